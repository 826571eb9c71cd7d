package derive_test

import (
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// TestUndated: what stands before any time has the first time that follows, or when it arrived if that was before.
func TestUndated(t *testing.T) {
	s := newShelf(t) // lines arrive at noon
	title := `{"type":"summary","summary":"early words","leafUuid":"x"}`
	s.put("imported", 0, 0, title, title, prompt(-60, "an hour before"), title, prompt(-50, "and then"))
	s.put("ahead", 0, 0, title, prompt(60, "of a clock that is fast"))
	s.put("bare", 0, 0, title)
	s.derive()
	hits, err := s.Search(s.Context(), server.Scope{All: true}, server.SearchQuery{Text: "early words", Limit: 50})
	kit.Must(t, err)
	got := map[string]map[int64]time.Duration{}
	for _, h := range hits.List {
		if got[h.Session.SessionID] == nil {
			got[h.Session.SessionID] = map[int64]time.Duration{}
		}
		got[h.Session.SessionID][h.Line] = h.Time.Sub(noon)
	}
	if imported := got["imported"]; len(imported) != 3 || imported[0] != -time.Hour || imported[1] != -time.Hour ||
		imported[3] != -time.Hour {
		t.Errorf("of an imported transcript: %v", imported)
	}
	for _, name := range []string{"ahead", "bare"} {
		if x := got[name]; len(x) != 1 || x[0] != 0 {
			t.Errorf("of %s: %v", name, x)
		}
	}
}
