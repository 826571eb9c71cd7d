package main

import (
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/control"
)

// fullCheckpoint has every member set.
func fullCheckpoint() control.Checkpoint {
	return control.Checkpoint{
		ID: "cp-0123456789ab", SessionID: "3f2a1b9c-0000-4000-8000-000000000001", PortID: "cart", TokensUsed: 137_412, TokenBudget: 167_000,
		TriggerType: "auto_80", ContextHash: "00112233445566ff",
		Summary:     "Title: Rounding in the cart\nPrompt: 이제 테스트도 고쳐 주세요\x1b[2J\nAnswer: All of them pass.\nTools: Edit 12, Read 9",
		ActiveFiles: []string{"/home/me/shop/cart.go", "/home/me/shop/\u009btax.go"}, CreatedAt: *before(2 * time.Hour),
	}
}

// fullBudgets has every member and every source.
func fullBudgets() control.Budgets {
	return control.Budgets{SchemaVersion: 1, Budgets: []control.Budget{
		{Session: "aa", Model: "claude-haiku-4-5", Window: 200_000, Limit: 155_460, Used: 1000, Source: "learned", Seen: 155_460},
		{Model: "claude-sonnet-5", Window: 1_000_000, Limit: 967_000, Source: "model"},
		{Model: "claude-haiku-4-5", Window: 200_000, Limit: 155_460, Source: "learned", Seen: 155_460},
		{Model: "gateway", Window: 200_000, Limit: 167_000, Source: "default"},
		{Model: "claude-opus-4-6", Window: 1_000_000, Limit: 967_000, Source: "seen"},
		{Session: "3f2a1b9c", Model: "claude-haiku-4-5", Window: 200_000, Limit: 120_000, Used: 61_000, Source: "configured", Pinned: true},
		{Session: "77", Model: "gateway", Window: 200_000, Limit: 168_000, Used: 170_000, Source: "boundary"},
	}}
}

// Checkpoints and budgets as people see them; nothing in them moves a terminal's cursor.
func TestCheckpointView(t *testing.T) {
	v := sessionView{now: *after(0), zone: time.UTC}
	c := fullCheckpoint()
	bare := control.Checkpoint{ID: "cp-ba9876543210", SessionID: "77", TriggerType: "compact", CreatedAt: *before(100 * 24 * time.Hour), Summary: "first\nsecond"}
	narrow := v
	narrow.columns = 60
	list := control.Checkpoints{Checkpoints: []control.Checkpoint{c, bare}, Next: 2}
	text := strings.Join([]string{
		v.checkpoints(list), narrow.checkpoints(list), v.checkpoints(control.Checkpoints{}), v.checkpoint(c), v.checkpoint(bare),
		v.budgets(fullBudgets()), v.budgets(control.Budgets{}),
	}, "---\n")
	if strings.ContainsAny(text, "\x1b\u009b") {
		t.Error("an escape sequence is printed")
	}
	golden(t, "checkpoints.txt", text)
}

// What cannot be meant is a mistake of the caller's, and no daemon is asked.
func TestCheckpointMistakes(t *testing.T) {
	jsonHome(t)
	t.Setenv(sessionVariable, "")
	for _, args := range [][]string{
		{"list", "--limit", "0"}, {"list", "--offset", "-1"}, {"list", "extra"}, {"show"}, {"show", "a", "b"}, {"show", "cp-1", "--session", "a"},
		{"create"}, {"create", "a"}, {"budget", "--session", "a", "--model", "b"}, {"budget", "--set", "5000"}, {"budget", "--unset"},
		{"budget", "--model", "m", "--set", "0"}, {"budget", "--model", "m", "--set", "many"}, {"budget", "--model", "m", "--set", "5000", "--unset"},
	} {
		code, out, words := inProcess(t, append([]string{"checkpoint"}, args...)...)
		if code != exitUsage || out != "" || !strings.HasPrefix(words, "ccship: ") {
			t.Errorf("%v: exit code %d, stdout %q, stderr %q", args, code, out, words)
		}
	}
}

// The newest checkpoint has no id that one could know.
func TestCheckpointLatest(t *testing.T) {
	jsonHome(t)
	socket := listen(t, spoken{document: control.Checkpoints{SchemaVersion: 1, Checkpoints: []control.Checkpoint{fullCheckpoint()}}})
	if code, out, words := inProcess(t, "checkpoint", "show", "latest", "--socket", socket); code != exitOK || !strings.Contains(out, "cp-0123456789ab") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, out, words)
	}
	socket = listen(t, spoken{document: control.Checkpoints{SchemaVersion: 1, Checkpoints: []control.Checkpoint{}}})
	if code, _, words := inProcess(t, "checkpoint", "show", "latest", "--session", "a", "--socket", socket); code != exitFailed || !strings.Contains(words, "there is no checkpoint yet") {
		t.Errorf("exit code %d, stderr %q", code, words)
	}
	// Claude Code names the session to what it runs.
	t.Setenv(sessionVariable, "3f2a")
	socket = listen(t, spoken{document: control.CheckpointAnswer{Checkpoint: fullCheckpoint()}})
	if code, out, words := inProcess(t, "checkpoint", "create", "--socket", socket); code != exitOK || !strings.Contains(out, "cp-0123456789ab") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, out, words)
	}
}
