package web_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// TestTopSessions: the most expensive sessions count their agents, the longest go by their records, and only those of the
// last 90 days are there; the activity has both with the hours of the week.
func TestTopSessions(t *testing.T) {
	s := loggedIn(t)
	put := func(id, parent string, ago, took time.Duration, output int) {
		h := head(id)
		h.Parent = parent
		end := today.Add(-ago)
		at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
		s.put(t, h, fmt.Sprintf(`{"type":"user","uuid":"a","timestamp":%q,"message":{"role":"user","content":"the %s one"}}`, at(end.Add(-took)), id),
			fmt.Sprintf(`{"type":"assistant","uuid":"b","requestId":"r-%s","timestamp":%q,"message":{"id":"m-%s","role":"assistant","model":"claude-opus-4-5","content":[{"type":"text","text":"ok"}],"usage":{"input_tokens":10,"output_tokens":%d}}}`, id, at(end), id, output))
	}
	put("short", "", time.Hour, time.Minute, 2000)
	put("long", "", 2*time.Hour, 3*time.Hour, 100)
	put("agents", "", 3*time.Hour, time.Minute, 1)
	put("agents/agent-1", "agents", 3*time.Hour, time.Minute, 9000)
	put("ancient", "", 100*24*time.Hour, 99*time.Hour, 90000)
	order := func(view string) string {
		var out []string
		for _, m := range regexp.MustCompile(`data-session="([a-z]+)"`).FindAllStringSubmatch(s.get(t, "/?view="+view), -1) {
			out = append(out, m[1])
		}
		return strings.Join(out, " ")
	}
	for view, want := range map[string]string{"costly": "agents short long", "tokens": "agents short long", "long": "long agents short"} {
		got := order(view)
		kit.Check(t, got == want || view == "long" && got == "long short agents", "%s lists %q, want %q", view, got, want)
	}
	kit.Equal(t, "with a date of the reader's", order("costly&since=2020-01-01"), "ancient agents short long")
	for _, path := range []string{"/activity", "/activity?bare=1"} {
		page := s.get(t, path)
		mustHave(t, page, "Most expensive", "Longest", "the agents one", "3 h", `class="chart heat week"`, `class="chart heat year"`)
		mustLack(t, page, "ancient")
	}
	robin := s.addUser(t, "robin", server.Member)
	s.as(t, robin)
	for _, path := range []string{"/?view=costly", "/?view=long", "/activity"} {
		a := s.do(t, "GET", path, nil, nil)
		kit.Check(t, a.code == http.StatusOK && !strings.Contains(a.body, " one"), "somebody else sees %d %s", a.code, a.body)
	}
}
