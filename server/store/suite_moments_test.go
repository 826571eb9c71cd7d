package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// momentsOf lists moments as "line.part kind data".
func momentsOf(t *testing.T, st full, q server.MomentQuery) string {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 1000
	}
	list := kit.Try(st.Moments(t.Context(), q)).Must(t)
	var out []string
	for _, m := range list {
		out = append(out, fmt.Sprintf("%d.%d %s %s", m.Line, m.Part, m.Kind, m.Data))
	}
	return strings.Join(out, ", ")
}

// moments: those of a stretch replace those stored for its lines, those of earlier lines replace one by one, and the
// end of the view cuts off the rest.
func (s suite) moments(t *testing.T) {
	st := s.open(t)
	lines := make([]server.Line, 40)
	for i := range lines {
		lines[i] = object(int64(i), "{}")
	}
	put(t, st, batch("s", lines...))
	task := lease(t, st)["s"]
	end := place(t, st, task)
	step := func(from, to int64, done bool, moments ...server.Moment) {
		t.Helper()
		d := server.Derivation{Task: task, Position: end, Live: true, LiveFrom: from, Done: done, Moments: moments}
		d.Position.Line = to
		kit.Must(t, st.SaveDerived(t.Context(), &d))
		task.Position = d.Position
	}
	at := func(line, part int64, kind, data string) server.Moment {
		return server.Moment{Line: line, Part: part, Kind: kind, Data: []byte(data)}
	}
	expect := func(q server.MomentQuery, want string) {
		t.Helper()
		q.Owner, q.Stream = task.Owner, task.Stream
		kit.Equal(t, fmt.Sprintf("%+v", q), momentsOf(t, st, q), want)
	}
	step(0, 10, false,
		at(0, 0, "command", "first"), at(1, 0, "prompt", "running"), at(1, 1, "error", "x"), at(9, 0, "rewind", "r"))
	var many []server.Moment
	for i := range int64(120) {
		many = append(many, at(20, i, "tool", fmt.Sprint(i)))
	}
	step(10, 30, false, append(many, at(1, 0, "prompt", "took"), at(9, 0, "", ""), at(10, 0, "command", "mid"))...)
	expect(server.MomentQuery{To: 20}, "0.0 command first, 1.0 prompt took, 1.1 error x, 10.0 command mid")
	expect(server.MomentQuery{From: 20, After: &server.Moment{Line: 20, Part: 117}}, "20.118 tool 118, 20.119 tool 119")
	expect(server.MomentQuery{Kinds: []string{"prompt", "error"}, Backwards: true, To: 21, Limit: 1}, "1.1 error x")
	expect(server.MomentQuery{Kinds: []string{"' OR 1=1 --"}}, "")

	// Derived again, from a shorter file.
	step(30, 40, true, at(35, 0, "clear", "old"))
	kit.Must(t, st.Renew(t.Context(), 1))
	task = lease(t, st)["s"]
	step(0, 10, false, at(2, 0, "prompt", "new"))
	expect(server.MomentQuery{Kinds: []string{"prompt", "error", "clear", "command"}},
		"2.0 prompt new, 10.0 command mid, 35.0 clear old")
	step(10, 12, true, at(11, 0, "clear", "last"))
	expect(server.MomentQuery{}, "2.0 prompt new, 11.0 clear last")

	kit.Must(t, st.ResetDerived(t.Context()))
	expect(server.MomentQuery{}, "")
	task = lease(t, st)["s"]
	step(0, 40, true, at(2, 0, "prompt", "again"))
	kit.Try(st.Forget(t.Context(), all, "s", 0, time.Now())).Must(t)
	expect(server.MomentQuery{}, "")
}
