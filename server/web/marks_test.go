package web_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// TestMarks: a reader stars, names, tags and notes a session; lists show it and are narrowed by it. Nobody else sees it.
func TestMarks(t *testing.T) {
	s := loggedIn(t)
	s.tour(t)
	s.put(t, head("plain"), prompt("nothing kept", "m", ago(0))...)
	mark := sessionPath(tourID, "/mark")
	a := s.do(t, "POST", mark, url.Values{"name": {"Cents <b>"}, "tags": {"money, open  question,money"}, "note": {"ask\n  Ana & co"}}, nil)
	kit.Require(t, a.code == 200 && strings.HasPrefix(a.path, "/sessions/"+tourID), "%d %s", a.code, a.path)
	s.do(t, "POST", mark, url.Values{"only": {"star"}, "star": {"1"}}, nil)
	page := s.get(t, sessionPath(tourID, ""))
	mustHave(t, page, "Cents &lt;b&gt;", "★ Starred", `href="/?tag=money"`, `href="/?tag=open-question"`, "ask\n  Ana &amp; co", `value="money, open-question"`)
	for _, path := range []string{"/", "/?view=starred", "/?tag=open-question", "/beside?current=x&view=starred", "/search?q=cart"} {
		mustHave(t, s.get(t, path), "Cents &lt;b&gt;")
	}
	mustLack(t, s.get(t, "/?view=starred"), "nothing kept")
	mustLack(t, s.get(t, "/?tag=money"), "nothing kept")
	mustHave(t, s.get(t, "/?tag=money"), `aria-current="true" href="/">money`)
	s.wants(t, 400, "POST", mark, url.Values{"note": {strings.Repeat("x", 4001)}})
	s.do(t, "POST", mark, url.Values{"only": {"star"}}, nil)
	page = s.get(t, sessionPath(tourID, ""))
	mustHave(t, page, "☆ Star", "Cents &lt;b&gt;")
	// Another owner sees the session, and nothing of what is kept.
	ana := s.addUser(t, "ana", server.Owner)
	s.login(t, s.addKey(t, ana, "desk"))
	mustLack(t, s.get(t, sessionPath(tourID, "")), "Cents &lt;b&gt;", "open-question", "Ana &amp; co")
	mustLack(t, s.get(t, "/"), "Cents &lt;b&gt;", "open-question")
	mustLack(t, s.get(t, "/search?q=cart"), "Cents &lt;b&gt;")
	// For a member it does not exist.
	lee := s.addUser(t, "lee", server.Member)
	s.login(t, s.addKey(t, lee, "table"))
	s.wants(t, 404, "POST", mark, url.Values{"star": {"1"}})
}
