//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	shortOne  = "5a5a1111-0000-4000-8000-000000000001"
	shortTwin = "5a5a2222-0000-4000-8000-000000000002"
	shortGone = "dddddddd"
)

// TestShortIDs gives every command that takes a session the beginning of its id, one that two sessions have, and one
// that none has.
func TestShortIDs(t *testing.T) {
	w := aloneWorld(t)
	w.start()
	for _, id := range []string{shortOne, shortTwin} {
		c := newTalk(id, w.cwd())
		path := w.path("-work-shop", id+".jsonl")
		w.add(path, c.prompt("round the cart"))
		w.add(path, c.says(1000, "Done."))
		age(t, path)
	}
	document := filepath.Join(w.cwd(), "spec.md")
	must(t, os.WriteFile(document, []byte("spec\n"), 0o600))
	w.sync()
	w.derived("cart", shortOne, shortTwin)
	to := filepath.Join(t.TempDir(), "restored.jsonl")
	for _, command := range []string{
		"messages SESSION", "messages SESSION --clear",
		"checkpoint create SESSION", "checkpoint create --session SESSION", "checkpoint list --session SESSION",
		"checkpoint show latest --session SESSION", "checkpoint budget --session SESSION",
		"link add " + document + " --session SESSION", "link list --session SESSION", "link rm " + document + " --session SESSION",
		"show SESSION", "show --timeline SESSION", "export SESSION", "resume SESSION",
		"share SESSION", "restore SESSION --to " + to, "verify SESSION", "verify --repair SESSION", "forget SESSION --yes",
	} {
		run := func(session string) (int, string) {
			out := w.ccship(strings.Split(strings.ReplaceAll(command, "SESSION", session), " ")...)
			return out.code, out.stdout + out.stderr
		}
		if code, said := run(shortTwin[:4]); code == 0 || !strings.Contains(said, shortOne) || !strings.Contains(said, shortTwin) {
			t.Errorf("%s, for two sessions: exit %d\n%s", command, code, said)
		}
		if code, said := run(shortGone); code == 0 || !strings.Contains(said, "there is no session "+shortGone) ||
			!strings.Contains(said, "ccship list") {
			t.Errorf("%s, for no session: exit %d\n%s", command, code, said)
		}
		if code, said := run(shortOne[:6]); code != 0 || strings.Contains(said, shortTwin) {
			t.Errorf("%s, for one session: exit %d\n%s", command, code, said)
		}
	}
	if out := w.ccship("list"); strings.Contains(out.stdout, "  server only ") || !strings.Contains(out.stdout, shortTwin[:8]) {
		t.Errorf("not one session was forgotten:\n%s%s", out.stdout, out.stderr)
	}
}

// TestShortIDsAreAllTried compares the commands above with those that the reference says take a session.
func TestShortIDsAreAllTried(t *testing.T) {
	test, err := os.ReadFile("cases_short_ids_test.go")
	must(t, err)
	page, err := os.ReadFile(filepath.Join("..", "docs", "commands.md"))
	must(t, err)
	command, taking := "", []string{}
	for line := range strings.Lines(string(page)) {
		form, heading := strings.CutPrefix(strings.TrimSpace(strings.TrimLeft(line, "#")), "ccship ")
		heading = heading && strings.HasPrefix(line, "#")
		if heading {
			command = strings.TrimSpace(regexp.MustCompile(`^([a-z-]+( |$))*`).FindString(form))
		}
		flag := strings.Contains(line, "`--session id`") && command != ""
		if heading && strings.Contains(form, "SESSION") || flag {
			taking = append(taking, command)
		}
	}
	if len(taking) < 14 {
		t.Fatalf("the reference has %d commands that take a session: %q", len(taking), taking)
	}
	for _, name := range taking {
		if !strings.Contains(string(test), `"`+name+" ") {
			t.Errorf("`ccship %s` is not tried", name)
		}
	}
}
