package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/server"
)

// TestRetentionOfASession: a session says what rules did to it and will do, and everything else about one that was
// dropped is still answered as the contract says.
func TestRetentionOfASession(t *testing.T) {
	r := newRig(t)
	for _, id := range []string{"gone", "held", "waits"} {
		r.post(fmt.Sprintf(`{"project_hash":"ph","session_id":%q,"ccship":{"v":1,"machine":"m","host":"h","epoch":"e","project":"p",
"generation":0,"end_line":2},"entries":[{"line_index":0,"type":"user"},{"line_index":1,"type":"user"}]}`, id))
	}
	r.waitDerived()
	type retention struct {
		RetiredAt *time.Time `json:"retired_at"`
		Rule      string
		Lines     int64
		DueAt     *time.Time `json:"due_at"`
		DueRule   string     `json:"due_rule"`
		Kept      string     `json:"kept_because"`
	}
	of := func(id string) retention {
		var a struct{ Retention retention }
		r.check(json.Unmarshal(r.get("/api/sessions/"+id).body, &a))
		return a.Retention
	}
	if got := of("gone"); got != (retention{}) {
		t.Errorf("without rules: %+v", got)
	}
	hold := func(id string) {
		_, err := r.store.AddHold(t.Context(), server.Hold{Session: id, By: "owner", Why: "a case", At: time.Now()})
		r.check(err)
	}
	hold("held")
	_, err := r.store.AddRetentionRule(t.Context(), server.RetentionRule{What: server.RetireSessions, Action: server.ActionDrop,
		Age: 240 * time.Hour, By: "owner", At: time.Now()})
	r.check(err)
	if got := of("held"); got != (retention{Kept: "hold"}) {
		t.Errorf("on hold: %+v", got)
	}
	got := of("waits")
	if got.DueAt == nil || time.Until(*got.DueAt) < 239*time.Hour || got.DueRule != "drop sessions not active for 10 days" || got.Lines != 0 {
		t.Errorf("waiting: %+v", got)
	}
	hold("waits")
	at := time.Now().Add(480 * time.Hour).Truncate(time.Microsecond)
	_, err = r.store.Retire(t.Context(), server.RetireOptions{By: "owner", Now: at})
	r.check(err)
	got = of("gone")
	if got.RetiredAt == nil || !got.RetiredAt.Equal(at) || got.Lines != 2 || got.Rule != "drop sessions not active for 10 days" || got.DueAt != nil || got.Kept != "" {
		t.Errorf("dropped: %+v", got)
	}
	for path, want := range map[string]int{"digest": 200, "entries": 200, "raw": 409} {
		a := r.get("/api/sessions/gone/" + path)
		if a.status != want || path == "raw" && !strings.Contains(string(a.body), "retired by policy") {
			t.Errorf("%s of a dropped session: %d %s", path, a.status, a.body)
		}
	}
	if a := r.get("/api/sessions"); a.status != http.StatusOK || strings.Count(string(a.body), `"session_id":"gone"`) != 1 {
		t.Errorf("the list: %d %s", a.status, a.body)
	}
}
