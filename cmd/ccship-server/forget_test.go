package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestForgetOneUsers: of two users' sessions with one id forget removes none, until the user is named.
func TestForgetOneUsers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.db")
	at := "sqlite:" + path
	keys := map[string]string{}
	for _, name := range []string{"ann", "bob"} {
		tool(t, 0, "user", "add", name, "--role", "member", "--store", at)
		key, _ := tool(t, 0, "key", "create", "--name", name+"s", "--user", name, "--store", at)
		keys[name] = strings.TrimSpace(key)
	}
	p := launch(t, path)
	for name, key := range keys {
		err := p.send(key, "s", 0)
		kit.Require(t, err == nil, "%s: %v", name, err)
	}
	_, words := tool(t, exitFailed, "forget", "s", "--yes", "--store", at)
	kit.Check(t, strings.Contains(words, "several users") && strings.Contains(words, "hint: add --user") &&
		strings.Contains(words, "ann") && strings.Contains(words, "bob"),
		"forget either: %s", words)
	tool(t, exitFailed, "forget", "s", "--yes", "--user", "eve", "--store", at)
	tool(t, 0, "forget", "s", "--yes", "--user", "bob", "--store", at)
	for name, want := range map[string]int{"ann": 200, "bob": 404} {
		got := p.status(t, keys[name], "/api/sessions/s")
		kit.Check(t, got == want, "the session of %s: %d, want %d", name, got, want)
	}
}
