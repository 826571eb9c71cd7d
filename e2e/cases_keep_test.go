//go:build unix

package e2e

import (
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestShareAndMark shares a session by a link that anybody can open until it is revoked, and keeps a star, a name, tags
// and a note, all from the command line.
func TestShareAndMark(t *testing.T) {
	t.Parallel()
	const id, other = "7e7e1111-0000-4000-8000-000000000001", "7f7f2222-0000-4000-8000-000000000002"
	w := weighed(t, id, other)
	ok := func(args ...string) string {
		t.Helper()
		out := w.ccship(args...)
		if out.code != 0 {
			t.Errorf("%v: exit %d\n%s%s", args, out.code, out.stdout, out.stderr)
		}
		return out.stdout
	}

	link := strings.TrimSpace(ok("sessions", "share", id[:8], "--expires", "12h"))
	if page, code := open(t, link); code != http.StatusOK || !strings.Contains(page, "weigh the anchor") || strings.Contains(page, "cargo") {
		t.Errorf("the link answers %d: %s", code, page)
	}
	list := ok("sessions", "share", "--list")
	number := regexp.MustCompile(`(?m)^ *(\d+) .*` + id[:8]).FindStringSubmatch(list)
	if number == nil || strings.Contains(list, filepath.Base(link)) || ok("sessions", "share", "--list", other[:8]) != "no links\n" {
		t.Fatalf("links:\n%s", list)
	}
	ok("sessions", "share", "--revoke", number[1])
	if page, code := open(t, link); code != http.StatusNotFound || strings.Contains(page, "anchor") {
		t.Errorf("the revoked link answers %d", code)
	}
	if out := w.ccship("sessions", "share", "--revoke", number[1]); out.code == 0 {
		t.Error("it is revoked twice")
	}
	for _, wrong := range [][]string{{}, {"--revoke", "1", id}, {"--revoke", "0"}, {"--revoke", "-1"}, {id, "--expires", "2y"}} {
		if out := w.ccship(append([]string{"sessions", "share"}, wrong...)...); out.code == 0 || strings.Contains(out.stdout, "/s/") {
			t.Errorf("share %v: exit %d, %s", wrong, out.code, out.stdout)
		}
	}

	ok("sessions", "mark", id[:8], "--star", "--name", "The anchor", "--tag", "iron,heavy", "--note", "weigh it again")
	kept := ok("sessions", "mark", id[:8], "--untag", "heavy")
	for _, want := range []string{"star  yes\n", "name  The anchor\n", "tags  iron\n", "note  weigh it again\n"} {
		if !strings.Contains(kept, want) {
			t.Errorf("the mark lacks %q:\n%s", want, kept)
		}
	}
	for _, only := range [][]string{{"--starred"}, {"--tag", "iron"}} {
		if got := ok(append([]string{"sessions", "list"}, only...)...); !strings.Contains(got, id[:8]) || strings.Contains(got, other[:8]) {
			t.Errorf("%v lists\n%s", only, got)
		}
	}
	if got := ok("sessions", "list", "--most", "tokens", "--limit", "1", "--since", "2020-01-01"); !strings.Contains(got, other[:8]) || strings.Contains(got, id[:8]) {
		t.Errorf("the one with the most tokens:\n%s", got)
	}
	if got := ok("sessions", "list", "--failed"); got != "no sessions\n" {
		t.Errorf("those with errors:\n%s", got)
	}
	if got := ok("sessions", "mark", id[:8], "--unstar", "--name", "", "--untag", "iron", "--note", ""); !strings.Contains(got, "star  no") {
		t.Errorf("nothing is kept any more:\n%s", got)
	}
}

// weighed is a world whose server has derived two sessions: one weighs the anchor, the other the cargo, with more tokens.
func weighed(t *testing.T, id, other string) *world {
	t.Helper()
	w := exactWorld(t)
	w.start()
	for i, session := range []string{id, other} {
		c := newTalk(session, w.cwd())
		path := w.path("-work-shop", session+".jsonl")
		w.add(path, c.prompt("weigh the "+[]string{"anchor", "cargo"}[i]))
		w.add(path, c.says(1000*(i+1), "It is weighed."))
		age(t, path)
	}
	w.sync()
	eventually(t, "the server has derived it", 60*time.Second, func() bool {
		out := w.ccship("search", "weigh").stdout
		return strings.Contains(out, id[:8]) && strings.Contains(out, other[:8])
	})
	return w
}

// TestSavedViews saves a list and a search from the command line, shows what is in them, and removes them.
func TestSavedViews(t *testing.T) {
	t.Parallel()
	const id, other = "7a7a1111-0000-4000-8000-000000000001", "7b7b2222-0000-4000-8000-000000000002"
	w := weighed(t, id, other)
	run := func(args ...string) string {
		t.Helper()
		out := w.ccship(append([]string{"sessions", "views"}, args...)...)
		if out.code != 0 {
			t.Errorf("%v: exit %d\n%s%s", args, out.code, out.stdout, out.stderr)
		}
		return out.stdout
	}
	if got := run(); got != "no saved views\n" {
		t.Errorf("at first: %s", got)
	}
	run("save", "The anchor", "--text", "anchor")
	run("save", "Cargo", "--search", "cargo", "--kind", "prompt,answer")
	if got := run(); got != "Cargo       search    kind prompt, answer; \"cargo\"\nThe anchor  sessions  \"anchor\"\n" {
		t.Errorf("lists\n%s", got)
	}
	if got := run("show", "The anchor"); !strings.Contains(got, id[:8]) || strings.Contains(got, other[:8]) {
		t.Errorf("the anchor shows\n%s", got)
	}
	if got := run("show", "Cargo"); !strings.Contains(got, other[:8]) || strings.Contains(got, id[:8]) {
		t.Errorf("the search shows\n%s", got)
	}
	run("save", "Cargo", "--most", "tokens", "--since", "9999d")
	if got := run("show", "Cargo", "--limit", "1"); !strings.Contains(got, other[:8]) || strings.Contains(got, id[:8]) {
		t.Errorf("the one with the most tokens:\n%s", got)
	}
	run("rm", "The anchor")
	for _, wrong := range [][]string{{"rm", "The anchor"}, {"show", "The anchor"}, {"save", "x"}, {"save", " ", "--text", "x"}, {"save", "x", "--kind", "tool"},
		{"save", "x", "--search", "y", "--failed"}, {"save", "x", "--failed", "--starred"}, {"save", "x", "--since", "36h"}, {"save", "x", "--project", "/tmp"}, {"list"}} {
		if out := w.ccship(append([]string{"sessions", "views"}, wrong...)...); out.code == 0 || out.stderr == "" {
			t.Errorf("%v: exit %d, %s", wrong, out.code, out.stdout)
		}
	}
	if got := run(); !strings.HasPrefix(got, "Cargo  sessions") || strings.Contains(got, "anchor") {
		t.Errorf("lists\n%s", got)
	}
}

// open fetches a page as a browser without a login.
func open(t *testing.T, address string) (page string, code int) {
	t.Helper()
	answer, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), answer.StatusCode
}
