package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
)

func checkConfig(_ context.Context, x *exam) []Finding {
	if x.o.ConfigErr != nil {
		f := explained(Fail, x.o.ConfigErr)
		f.Detail = "checks that depend on it are skipped"
		return []Finding{f}
	}
	var found []Finding
	path := x.o.Config.Path
	info, err := os.Stat(path)
	if err == nil && !onlyOwners(info.Mode()) && ours(info) {
		f := loose(path, "the configuration", info, 0o600)
		if info.Mode().Perm()&0o022 == 0 { // readable is harmless: it holds no secret
			f.Level = Note
		}
		found = append(found, f)
	}
	r := x.daemon()
	for _, n := range r.status.Advice {
		switch n.Kind {
		case "config":
			found = append(found, Finding{Level: Warn, Text: n.Text,
				Detail: "the daemon keeps using the configuration it read before", Fix: n.Hint})
		case "restart":
			f := Finding{Level: Warn, Text: n.Text, Fix: "`ccship service restart`"}
			if x.managedDaemon() {
				f = f.safely(phaseService, x.restart)
			}
			found = append(found, f)
		}
	}
	if c := r.status.Config; r.client != nil && c != "" && c != path && r.socket != x.o.ForeignSocket &&
		!(sameFile(c, path) && exists(c)) {
		found = append(found, Finding{Level: Note, Text: "the daemon uses a different configuration file",
			Detail: "daemon: " + c + "; this command: " + path})
	}
	switch {
	case len(found) > 0:
		return found
	case errors.Is(err, fs.ErrNotExist):
		return fine("no file, defaults in use: " + path)
	}
	return fine("valid: " + path)
}

func checkKey(_ context.Context, x *exam) []Finding {
	if x.o.ConfigErr != nil {
		return nil
	}
	path := x.o.Config.APIKeyFile
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && x.o.Config.OriginOf("api_key_file") == config.FromDefault {
		if x.o.Config.ServerURL == "" {
			return nil
		}
		return fine("none; requests are sent without a key")
	}
	if _, readErr := config.ReadAPIKey(path); readErr != nil {
		f := explained(Fail, readErr)
		if err == nil && info.Mode().IsRegular() && !onlyOwners(info.Mode()) && ours(info) {
			f.Fix = "`chmod 600 " + control.ShellWord(path) + "`"
			f.Detail = "the key is not used until this is fixed"
			f = f.safely(phaseFile, func(context.Context) error { return os.Chmod(path, 0o600) })
		}
		return []Finding{f}
	}
	return fine("only you can read " + path)
}

// checkEnvironment finds values from the environment that the service does not get.
func checkEnvironment(_ context.Context, x *exam) []Finding {
	if x.o.ConfigErr != nil || !x.installed() {
		return nil
	}
	values, err := x.o.Config.Unwritten(x.o.Env)
	if err != nil {
		return nil // checkConfig reports it
	}
	var names []string
	for _, v := range values {
		if v.Origin != config.FromFlag { // a flag is meant for this command only
			names = append(names, v.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []Finding{{Level: Warn, Text: "the service does not see values set in this shell's environment: " +
		strings.Join(names, ", "), Fix: "`ccship service install` writes them into the configuration"}}
}
