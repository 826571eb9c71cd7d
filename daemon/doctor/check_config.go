package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/protocol"
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

// checkMasking says whether secrets are masked for the server, and by which setting.
func checkMasking(ctx context.Context, x *exam) []Finding {
	server, mode := x.o.Config.ServerURL, x.o.Config.Redact
	if x.o.ConfigErr != nil || server == "" {
		return nil
	}
	const turnOn = "`ccship config redact on`"
	switch p := x.server(); {
	case mode == "on":
		return fine("secrets are masked before they are sent (redact is on)")
	case mode == "off":
		return []Finding{{Level: Note, Text: "secrets are not masked (redact is off)", Fix: turnOn}}
	case !project.Loopback(server):
		return fine("secrets are masked before they are sent (redact is auto)")
	case p.err == nil && !p.kind.Extension:
		return []Finding{{Level: Note, Text: "secrets are not masked for " + server + " (redact is auto)",
			Detail: "a plain server at a loopback address counts as this machine; a tunnel may end there", Fix: turnOn}}
	case protocol.AskSameHost(ctx, server) == nil:
		return fine("secrets are not masked: " + server + " proves that it is on this machine (redact is auto)")
	}
	return fine("secrets are masked: " + server + " does not prove that it is on this machine (redact is auto)")
}

// noTranscripts is the variable that stops Claude Code from writing transcripts.
const noTranscripts = "CLAUDE_CODE_SKIP_PROMPT_HISTORY"

// claudeSettings is the part of a Claude Code settings file that is checked.
type claudeSettings struct {
	path  string
	Env   map[string]any `json:"env"`
	Hooks any            `json:"hooks"`
}

// settings returns the settings files that exist, each once; bad are those that cannot be parsed.
func (x *exam) settings() (all []claudeSettings, bad []string) {
	seen := map[string]bool{}
	for _, root := range x.roots() {
		for _, path := range config.SettingsFiles(filepath.Dir(root)) {
			text, err := os.ReadFile(path)
			if seen[path] || errors.Is(err, fs.ErrNotExist) {
				continue
			}
			seen[path] = true
			s := claudeSettings{path: path}
			if err == nil && json.Unmarshal(text, &s) == nil {
				all = append(all, s)
			} else {
				bad = append(bad, path)
			}
		}
	}
	return all, bad
}

// checkRecording finds settings that stop Claude Code from writing transcripts.
func checkRecording(_ context.Context, x *exam) []Finding {
	var found []Finding
	all, bad := x.settings()
	for _, s := range all {
		if on(s.Env[noTranscripts]) {
			found = append(found, Finding{Level: Warn,
				Text: "Claude Code is set to write no transcripts: there is nothing to deliver", Detail: noTranscripts + " in " +
					s.path, Fix: "remove it there"})
		}
	}
	env := x.o.Env
	if env == nil {
		env = os.LookupEnv
	}
	if v, _ := env(noTranscripts); on(v) {
		found = append(found, Finding{Level: Warn, Text: "Claude Code, started from this shell, writes no transcripts",
			Detail: noTranscripts + " is set in the environment", Fix: "`unset " + noTranscripts + "`"})
	}
	for _, path := range bad {
		found = append(found, Finding{Level: Note, Text: "a Claude Code settings file is not valid JSON", Detail: path,
			Fix: "fix that file"})
	}
	return found
}

// on says whether the value of a switch turns it on.
func on(v any) bool {
	switch v := v.(type) {
	case string:
		return v != "" && v != "0" && !strings.EqualFold(v, "false")
	case bool:
		return v
	case float64:
		return v != 0
	}
	return false
}

// checkHooks finds hooks of older tools that deliver the same lines.
func checkHooks(_ context.Context, x *exam) []Finding {
	var found []Finding
	all, _ := x.settings()
	for _, s := range all {
		if mentions(s.Hooks, "codetracker") {
			found = append(found, Finding{Level: Note,
				Text: "a codetracker hook delivers the same lines, and Claude Code waits for it", Detail: s.path,
				Fix: "remove the hook once ccship has delivered everything"})
		}
	}
	return found
}

// mentions says whether any string in a JSON value contains word, which is in lower case.
func mentions(v any, word string) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(strings.ToLower(v), word)
	case []any:
		for _, item := range v {
			if mentions(item, word) {
				return true
			}
		}
	case map[string]any:
		for _, item := range v {
			if mentions(item, word) {
				return true
			}
		}
	}
	return false
}
