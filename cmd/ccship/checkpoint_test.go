package main

import (
	"strings"
	"testing"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

// What cannot be meant is a mistake of the caller's, and no daemon is asked.
func TestCheckpointMistakes(t *testing.T) {
	jsonHome(t)
	t.Setenv("CLAUDE_CODE_SESSION_ID", "")
	for _, args := range [][]string{
		{"list", "--limit", "0"}, {"list", "--offset", "-1"}, {"list", "extra"}, {"show"}, {"show", "a", "b"}, {"show", "cp-1", "--session", "a"},
		{"create", "a", "b"}, {"create", "a", "--session", "b"}, {"budget", "--session", "a", "--model", "b"}, {"budget", "--set", "5000"}, {"budget", "--unset"},
		{"budget", "--model", "m", "--set", "0"}, {"budget", "--model", "m", "--set", "many"}, {"budget", "--model", "m", "--set", "5000", "--unset"},
	} {
		code, out, words := inProcess(t, append([]string{"checkpoint"}, args...)...)
		kit.Check(t, code == show.ExitUsage && out == "" && strings.HasPrefix(words, "ccship: "),
			"%v: exit code %d, stdout %q, stderr %q", args, code, out, words)
	}
}

// The newest checkpoint has no id that one could know.
func TestCheckpointLatest(t *testing.T) {
	jsonHome(t)
	socket := say(t, control.Checkpoints{SchemaVersion: 1, Checkpoints: []control.Checkpoint{showtest.Checkpoint()}})
	code, out, words := inProcess(t, "checkpoint", "show", "latest", "--socket", socket)
	kit.Check(t, code == show.ExitOK && strings.Contains(out, "cp-0123456789ab"), "exit code %d, stdout %q, stderr %q", code, out, words)
	socket = say(t, control.Checkpoints{SchemaVersion: 1, Checkpoints: []control.Checkpoint{}})
	code, _, words = inProcess(t, "checkpoint", "show", "latest", "--session", "a", "--socket", socket)
	kit.Check(t, code == show.ExitFailed && strings.Contains(words, "there is no checkpoint yet"), "exit code %d, stderr %q", code, words)
	// Claude Code names the session to what it runs.
	t.Setenv("CLAUDE_CODE_SESSION_ID", "3f2a")
	socket = say(t, control.CheckpointAnswer{Checkpoint: showtest.Checkpoint()})
	code, out, words = inProcess(t, "checkpoint", "create", "--socket", socket)
	kit.Check(t, code == show.ExitOK && strings.Contains(out, "cp-0123456789ab"), "exit code %d, stdout %q, stderr %q", code, out, words)
	socket = say(t, control.CheckpointAnswer{Checkpoint: showtest.Checkpoint()})
	code, out, words = inProcess(t, "checkpoint", "create", "3f", "--socket", socket)
	kit.Check(t, code == show.ExitOK && strings.Contains(out, "cp-0123456789ab"), "with the beginning of an id: exit code %d, stdout %q, stderr %q", code, out, words)
}
