package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlite"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// hostileName sets the clipboard, clears the screen, turns letters around, hides some, and begins lines and cells of
// its own. Names of sessions, projects and keys are whatever a client sent.
const hostileName = "T\x1b]52;c;aGk=\x07\x1b[2J\u009b2J\u202egnp.exe\u2066\U000e0041\r\nINJECTED\tCELL\u2028\x7f\x1b[8m"

// TestHostileNames: what others chose cannot steer the operator's terminal, nor look like a line of ours.
func TestHostileNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.db")
	at := "sqlite:" + path
	s := kit.Try(sqlite.Open(t.Context(), path, sqlstore.Opening{})).Must(t)
	must := func(err error) {
		t.Helper()
		kit.Must(t, err)
	}
	ann, err := s.AddUser(t.Context(), "ann", server.Owner, server.By{At: time.Now()})
	must(err)
	bob, err := s.AddUser(t.Context(), "bob\u202e", server.Member, server.By{At: time.Now()})
	must(err)
	must(s.AddKey(t.Context(), server.Key{User: ann, Name: hostileName, Hash: [32]byte{1}, Created: time.Now()}))
	k, err := s.FindKey(t.Context(), [32]byte{1})
	must(err)
	must(s.AddShare(t.Context(), server.Share{Owner: ann.ID, With: bob.ID, ProjectHash: hostileName, Project: hostileName, Created: time.Now(), By: k.ID}))
	eve, err := s.AddUser(t.Context(), "eve"+hostileName, server.Viewer, server.By{Key: k.ID, At: time.Now()})
	must(err)
	must(s.AddKey(t.Context(), server.Key{User: eve, Name: "made" + hostileName, Hash: [32]byte{2}, Created: time.Now()}))
	for _, id := range []string{hostileName, "s"} {
		must(s.Put(t.Context(), &server.Batch{Owner: ann.ID, Received: time.Now(), Lines: []server.Line{{Raw: []byte(`{"a":"AKIA` + "Q3EGRIJ7T6FGM2XY" + `"}`)}},
			Head: server.Head{SessionID: id, Machine: hostileName, Epoch: "e", Host: hostileName, Project: hostileName, Path: hostileName, Cwd: hostileName, EndLine: 1}}))
	}
	must(s.Close())
	shown, ended := 0, false
	for _, args := range [][]string{
		{"user", "list"}, {"key", "list"}, {"share", "list"}, {"verify"}, {"verify", "--secrets"}, {"retention"},
		{"retention", "hold", "--project", hostileName, "--why", hostileName},
		{"retention", "--log", "9"}, {"key", "revoke", "--name", "no" + hostileName}, {"key", "revoke", "--name", hostileName},
		{"forget", "no" + hostileName, "--yes"}, {"forget", hostileName, "--yes"}, {hostileName},
	} {
		for _, more := range [][]string{nil, {"--json"}} {
			var out, words strings.Builder
			_ = run(t.Context(), append(append(append([]string{}, args...), more...), "--store", at), &out, &words)
			all := out.String() + words.String()
			shown += strings.Count(all, "INJECTED")
			ended = ended || strings.Contains(all, "with it ended: keys \"made") && strings.Contains(all, "now disabled: \"eve") &&
				strings.Contains(all, "--enable")
			for _, r := range all {
				kit.Require(t, r == '\n' || r == '\t' || !term.Steers(r), "%q %q prints %q:\n%q", args, more, r, all)
			}
			for line := range strings.Lines(all) {
				kit.Check(t, !strings.HasPrefix(line, "INJECTED"), "%q: a line is not ours:\n%s", args, all)
			}
			kit.Check(t, more == nil || out.Len() == 0 || json.Valid([]byte(out.String())),
				"%q prints no JSON: %s", args, out.String())
		}
	}
	kit.Check(t, ended, "revoking a key does not say what ended with it")
	kit.Check(t, shown >= 10, "the name is shown %d times", shown)
}

// TestPrintsThroughTerm: nothing is printed past package term.
func TestPrintsThroughTerm(t *testing.T) {
	files, err := filepath.Glob("*.go")
	kit.Require(t, err == nil && len(files) >= 20, "%v %v", err, files)
	for _, file := range files {
		text := kit.Try(os.ReadFile(file)).Must(t)
		for _, past := range []string{"fmt.Fprint", "fmt.Print", "os.Stdout", "os.Stderr", "tabwriter"} {
			kit.Check(t, strings.HasSuffix(file, "_test.go") || file == "main.go" || !strings.Contains(string(text), past),
				"%s prints with %s", file, past)
		}
	}
}
