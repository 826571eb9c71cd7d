package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript/planted"
)

// say sends a line with a text.
func (p *program) say(t *testing.T, key, session string, line int, text string) {
	t.Helper()
	body := kit.Try(json.Marshal(map[string]any{"session_id": session, "entries": []any{map[string]any{
		"line_index": line, "type": "user", "message": map[string]any{"role": "user", "content": text}}}})).Must(t)
	p.must(t, key, http.MethodPost, "/api/conversations", body)
}

// TestScan: secrets in a running server are found, also where other bytes have replaced a line; none is printed.
func TestScan(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.db")
	key := newKeyIn(t, path)
	at := "sqlite:" + path
	p := launch(t, path)
	p.say(t, key, "clean", 0, "nothing to see")
	if out, words := tool(t, 0, "verify", "--secrets", "--store", at); out != "" || !strings.Contains(words, "read 1 transcripts, 1 lines") {
		t.Errorf("a clean store: %s%s", out, words)
	}
	r := rand.New(rand.NewPCG(1, 1))
	kinds := planted.Kinds()
	names := slices.Sorted(maps.Keys(kinds))
	var secrets []string
	for i, name := range names {
		text, secret := planted.Plant(r, kinds[name])
		secrets = append(secrets, secret)
		p.say(t, key, "dirty", i, "before\n"+text+"\nafter")
	}
	p.say(t, key, "dirty", 0, "taken back") // the replaced bytes are kept
	out, words := tool(t, exitFailed, "verify", "--secrets", "--json", "--store", at)
	var doc scanReport
	err := json.Unmarshal([]byte(out), &doc)
	kit.Require(t, err == nil && words == "", "%v in %s%s", err, out, words)
	found := map[int64]bool{}
	for _, f := range doc.Findings {
		found[f.Line] = true
		kit.Check(t, f.SessionID == "dirty" && f.User == "owner" && f.Replaced == (f.Line == 0) && len(f.Rules) != 0,
			"%+v", f)
	}
	for i, name := range names {
		kit.Check(t, found[int64(i)], "%s is not found", name)
	}
	human, words := tool(t, exitFailed, "verify", "--secrets", "--store", at)
	kit.Check(t, strings.Contains(human, `"dirty" of "owner"`) && strings.Contains(words, "hint: revoke"),
		"%s%s", human, words)
	for i, secret := range secrets {
		kit.Check(t, len(secret) <= 8 || !strings.Contains(out+human+words, secret),
			"the report has the secret of %s", names[i])
	}
	want := fmt.Sprintf("%d places", len(names))
	kit.Check(t, strings.Contains(words, want), "%s, want %s", words, want)
}
