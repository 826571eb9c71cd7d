package web_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// TestRetentionOnPages: the page of a session says what rules took of it, and when one takes it or why none does.
func TestRetentionOnPages(t *testing.T) {
	s := loggedIn(t)
	at := today.UTC().Truncate(time.Second).Add(-10 * 24 * time.Hour)
	stamp := at.Format(time.RFC3339)
	for _, id := range []string{"gone", "starred", "waiting", "rewound"} {
		s.put(t, head(id), append(prompt(id, "claude-opus-4-8", stamp),
			prompt("more of "+id, "claude-opus-4-8", stamp)...)...)
	}
	h := head("rewound")
	h.Generation, h.RewoundTo = 1, 2
	s.put(t, h, prompt("other", "claude-opus-4-8", stamp)...)
	for _, id := range []string{"gone", "starred", "waiting", "rewound"} {
		mustLack(t, s.get(t, "/sessions/"+id), `id="retired"`, `id="due"`)
	}
	rule := func(r server.RetentionRule) {
		r.Action, r.At, r.By = server.ActionDrop, today, "kim"
		kit.Try(s.store.AddRetentionRule(t.Context(), r)).Must(t)
	}
	apply := func() {
		kit.Try(s.store.Retire(t.Context(), server.RetireOptions{By: "kim", Now: today.Add(100 * 24 * time.Hour)})).Must(t)
	}
	rule(server.RetentionRule{What: server.RetireGenerations, Age: 24 * time.Hour})
	apply()
	mustHave(t, s.get(t, "/sessions/rewound"), `id="retired"`, "2 lines of earlier versions of this file were retired by policy")
	mustLack(t, s.get(t, "/sessions/rewound"), `id="due"`)
	mustLack(t, s.get(t, "/sessions/gone"), `id="retired"`)
	hold := func(session string) {
		kit.Try(s.store.AddHold(t.Context(), server.Hold{Session: session, By: "kim", Why: "a case", At: today})).Must(t)
	}
	hold("rewound")
	a := s.do(t, "POST", "/sessions/starred/mark", url.Values{"only": {"star"}, "star": {"1"}}, nil)
	kit.Require(t, a.code == 200, "star: %d", a.code)
	rule(server.RetentionRule{What: server.RetireSessions, Age: 90 * 24 * time.Hour})
	mustHave(t, s.get(t, "/sessions/rewound"), "No rule of retention takes this session: it is on hold.")
	mustHave(t, s.get(t, "/sessions/starred"), "No rule of retention takes this session: a user gave it a star")
	mustHave(t, s.get(t, "/sessions/waiting"), `id="due"`, "drop sessions not active for 90 days",
		`datetime="`+at.Add(90*24*time.Hour).Format(time.RFC3339)+`"`)
	hold("waiting")
	apply()
	page := s.get(t, "/sessions/gone")
	mustHave(t, page, "Retired by policy on",
		"(drop sessions not active for 90 days), 4 lines; usage is kept", "Lines 1 to 4 are retired by policy.")
	mustLack(t, page, `id="due"`, "answer to")
	for _, below := range []string{"/prompts", "/context", "/compare", "/share", "/export?format=md", "/export?format=html", "/L/1", "?from=end", "?mode=all"} {
		s.wants(t, 200, "GET", "/sessions/gone"+below, nil)
	}
	h = head("gone")
	h.RewoundTo = 4
	s.put(t, h, prompt("back again", "claude-opus-4-8", stamp)...)
	page = s.get(t, "/sessions/gone")
	mustHave(t, page, "Retired by policy on", "4 lines; usage is kept", "back again")
	mustLack(t, page, "are not on the server")
}
