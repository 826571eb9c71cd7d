package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/ccship/ccship/daemon/config"
)

func checkConfig(_ context.Context, x *exam) []Finding {
	if x.o.ConfigErr != nil {
		f := explained(Fail, x.o.ConfigErr)
		f.Detail = "what depends on it is not looked at"
		return []Finding{f}
	}
	var found []Finding
	path := x.o.Config.Path
	info, err := os.Stat(path)
	if err == nil && !onlyOwners(info.Mode()) && ours(info) {
		f := loose(path, "the configuration", info, 0o600)
		if info.Mode().Perm()&0o022 == 0 { // there is no secret in it
			f.Level = Note
		}
		found = append(found, f)
	}
	r := x.daemon()
	for _, n := range r.status.Advice {
		switch n.Kind {
		case "config":
			found = append(found, Finding{Level: Warn, Text: n.Text, Detail: "the daemon keeps using the one it read before", Fix: n.Hint})
		case "restart":
			f := Finding{Level: Warn, Text: n.Text, Fix: "`ccship restart`"}
			if x.managedDaemon() {
				f = f.safely(turnService, x.restart)
			}
			found = append(found, f)
		}
	}
	if c := r.status.Config; r.client != nil && c != "" && c != path && r.socket != x.o.ForeignSocket && !(sameFile(c, path) && exists(c)) {
		found = append(found, Finding{Level: Note, Text: "the daemon reads another configuration than this command", Detail: c + ", this is " + path})
	}
	switch {
	case len(found) > 0:
		return found
	case errors.Is(err, fs.ErrNotExist):
		return fine("none, the defaults hold: " + path)
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
		return fine("none: the server is asked without one")
	}
	if _, readErr := config.ReadAPIKey(path); readErr != nil {
		f := explained(Fail, readErr)
		if err == nil && info.Mode().IsRegular() && !onlyOwners(info.Mode()) && ours(info) {
			f.Fix = "`chmod 600 " + shell(path) + "`"
			f.Detail = "it is not used until then"
			f = f.safely(turnFile, func(context.Context) error { return os.Chmod(path, 0o600) })
		}
		return []Finding{f}
	}
	return fine("only you can read " + path)
}

// checkEnvironment finds values that a service will not have.
func checkEnvironment(_ context.Context, x *exam) []Finding {
	if x.o.ConfigErr != nil || !x.installed() {
		return nil
	}
	values, err := x.o.Config.Unwritten(x.o.Env)
	if err != nil {
		return nil // checkConfig says so
	}
	var names []string
	for _, v := range values {
		if v.Origin != config.FromFlag { // it is meant for this command
			names = append(names, v.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []Finding{{Level: Warn, Text: "the service does not see what this shell's environment says of " + strings.Join(names, ", "), Fix: "`ccship install` writes it into the configuration"}}
}
