package store_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript/provenance"
)

// editsGone: what a session wrote is as little there as its line is: masked, it has the hash of the token, and retired
// it has none. What was answered by its edits goes with them.
func (s suite) editsGone(t *testing.T) {
	st := s.open(t)
	const line = `var key = "` + needle + `" // of the shop`
	const kept = `var name = "a shop for everybody"`
	input, _ := json.Marshal(map[string]string{"file_path": "/home/kim/shop/key.go", "content": line + "\n" + kept + "\n"})
	at := start.Format(time.RFC3339Nano)
	call := fmt.Sprintf(`{"type":"assistant","timestamp":%q,"message":{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Write","input":%s}]}}`, at, input)
	put(t, st, batch("s", object(0, fmt.Sprintf(`{"type":"user","timestamp":%q,"message":{"role":"user","content":"write it"}}`, at)),
		object(1, call),
		object(2, fmt.Sprintf(`{"type":"user","timestamp":%q,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]}}`, at))))
	understand(t, st)
	has := func(texts ...string) (n int) {
		t.Helper()
		q := server.EditQuery{Name: "key.go", To: start.Add(time.Hour), Limit: 9}
		for _, text := range texts {
			sum, _, _ := provenance.SumOf(text)
			q.Sums = append(q.Sums, sum)
		}
		list := kit.Try(st.EditsOf(t.Context(), server.Scope{All: true}, q)).Must(t)
		for _, e := range list {
			n += len(e.Sums)
		}
		return n
	}
	want := func(when string, secret, token, other int) {
		t.Helper()
		if got := [3]int{has(line), has(masked(line)), has(kept)}; got != [3]int{secret, token, other} {
			t.Errorf("%s: %d with the secret, %d with its token, %d others; want %d, %d, %d", when, got[0], got[1], got[2], secret, token, other)
		}
	}
	asked := func(when string, keep bool) {
		t.Helper()
		opened(t, st, "s", func(snap server.Snapshot) {
			x := snap.Session()
			list, err := st.Commits(t.Context(), all, x.Owner, x.ID)
			kit.Check(t, len(list) <= 0 && err == nil, "%s: %v, %v", when, list, err)
			if keep {
				keepCommit(t, st, x, "c0ffee", start, 2)
			}
		})
	}
	want("written", 1, 0, 1)
	asked("written", true)

	var m *server.Masking
	opened(t, st, "s", func(snap server.Snapshot) {
		m = &server.Masking{Stream: snap.Session().ID, Lines: []server.LineMask{lineMask(t, snap, 1, call)}}
	})
	kit.Equal(t, "masked", mask(t, st, m), server.Masked{Lines: 1})
	want("masked", 0, 0, 0)
	asked("masked", true)
	understand(t, st)
	want("derived from what is masked", 0, 1, 1)

	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Age: 30 * day})
	retire(t, st)
	want("retired", 0, 0, 0)
	asked("retired", false)
	understand(t, st)
	want("derived from what is retired", 0, 0, 0)
}
