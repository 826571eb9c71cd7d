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
)

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
