//go:build unix

package e2e

import (
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestShareAndList shares a session by a link that anybody can open until it is revoked, and lists by what a session cost.
func TestShareAndList(t *testing.T) {
	t.Parallel()
	const id, other = "7e7e1111-0000-4000-8000-000000000001", "7f7f2222-0000-4000-8000-000000000002"
	w := weighed(t, id, other)
	ok := func(args ...string) string {
		t.Helper()
		out := w.look("", 0, args...)
		return out.stdout
	}

	link := strings.TrimSpace(ok("share", id[:8], "--expires", "12h"))
	if page, code := open(t, link); code != http.StatusOK || !strings.Contains(page, "weigh the anchor") || strings.Contains(page, "cargo") {
		t.Errorf("the link answers %d: %s", code, page)
	}
	list := ok("share", "--list")
	number := regexp.MustCompile(`(?m)^ *(\d+) .*` + id[:8]).FindStringSubmatch(list)
	if number == nil || strings.Contains(list, filepath.Base(link)) || ok("share", "--list", other[:8]) != "no links\n" {
		t.Fatalf("links:\n%s", list)
	}
	ok("share", "--revoke", number[1])
	if page, code := open(t, link); code != http.StatusNotFound || strings.Contains(page, "anchor") {
		t.Errorf("the revoked link answers %d", code)
	}
	if out := w.ccship("share", "--revoke", number[1]); out.code == 0 {
		t.Error("it is revoked twice")
	}
	for _, wrong := range [][]string{{}, {"--revoke", "1", id}, {"--revoke", "0"}, {"--revoke", "-1"}, {id, "--expires", "2y"}} {
		if out := w.ccship(append([]string{"share"}, wrong...)...); out.code == 0 || strings.Contains(out.stdout, "/s/") {
			t.Errorf("share %v: exit %d, %s", wrong, out.code, out.stdout)
		}
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
	w.derived("weighed", id, other)
	return w
}

// open fetches a page as a browser without a login.
func open(t *testing.T, address string) (page string, code int) {
	t.Helper()
	answer, err := http.Get(address)
	must(t, err)
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	must(t, err)
	return string(b), answer.StatusCode
}
