package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ccship/ccship/daemon/claude"
)

// noTranscripts is the variable that has Claude Code write no transcripts.
const noTranscripts = "CLAUDE_CODE_SKIP_PROMPT_HISTORY"

// claudeSettings is what is looked at of a file with settings of Claude Code.
type claudeSettings struct {
	path  string
	Env   map[string]any `json:"env"`
	Hooks any            `json:"hooks"`
}

// settings are the files that there are, each once, and those that cannot be understood.
func (x *exam) settings() (all []claudeSettings, bad []string) {
	seen := map[string]bool{}
	for _, root := range x.roots() {
		for _, path := range claude.SettingsFiles(filepath.Dir(root)) {
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

// checkRecording finds what keeps Claude Code from writing transcripts at all.
func checkRecording(_ context.Context, x *exam) []Finding {
	var found []Finding
	all, bad := x.settings()
	for _, s := range all {
		if on(s.Env[noTranscripts]) {
			found = append(found, Finding{Level: Warn, Text: "Claude Code is told to write no transcripts: there is nothing to deliver", Detail: noTranscripts + " in " + s.path, Fix: "remove it there"})
		}
	}
	env := x.o.Env
	if env == nil {
		env = os.LookupEnv
	}
	if v, _ := env(noTranscripts); on(v) {
		found = append(found, Finding{Level: Warn, Text: "Claude Code, started from this shell, writes no transcripts", Detail: noTranscripts + " is set in the environment", Fix: "`unset " + noTranscripts + "`"})
	}
	for _, path := range bad {
		found = append(found, Finding{Level: Note, Text: "settings of Claude Code cannot be understood", Detail: path, Fix: "fix that file"})
	}
	return found
}

// on says whether the value of a switch is one.
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

// checkHooks finds hooks of older tools that do what ccship does.
func checkHooks(_ context.Context, x *exam) []Finding {
	var found []Finding
	all, _ := x.settings()
	for _, s := range all {
		if mentions(s.Hooks, "codetracker") {
			found = append(found, Finding{Level: Note, Text: "a hook of codetracker delivers the same lines, and Claude Code waits for it", Detail: s.path, Fix: "remove the hook there when ccship has everything"})
		}
	}
	return found
}

// mentions says whether any text within a value of JSON holds a word, which is in lower case.
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
