package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
)

// noise is lines that do not compress below half of their size.
func noise(count int, size int) (out []server.Line) {
	r := rand.New(rand.NewPCG(1, uint64(count)))
	for i := range int64(count) {
		text := make([]byte, 0, size)
		for len(text) < size {
			text = fmt.Appendf(text, "%016x", r.Uint64())
		}
		out = append(out, object(i, `{"x":"`+string(text)+`"}`))
	}
	return out
}

// retireSpace: after dropping a user's sessions, and after forgetting one, the database becomes smaller on the disk.
func (s suite) retireSpace(t *testing.T) {
	if s.with == nil || s.cooling {
		t.Skip("one way is enough")
	}
	st := s.open(t)
	if w, ok := st.(sealing); ok {
		st = w.full
	}
	for _, name := range []string{"dropped", "forgotten"} {
		put(t, st, batch(name, noise(400, 20000)...), func(b *server.Batch) { b.Owner = 1 })
	}
	size := func() int64 {
		kit.Must(t, st.Vacuum(t.Context(), true))
		n := kit.Try(st.(server.Sizer).Sizes(t.Context())).Must(t)
		return n.Bytes
	}
	// shrink waits until the database has become smaller by 3 MiB. PostgreSQL gives back what no transaction can still
	// see, so an ANALYZE of its own that runs meanwhile puts it off.
	shrink := func(what string, before int64) (now int64) {
		for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); {
			if now = size(); before-now > 3<<20 {
				return now
			}
		}
		t.Fatalf("%s: %d bytes become %d", what, before, now)
		return 0
	}
	before := size()
	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Age: day, User: 1})
	kit.Try(st.AddHold(t.Context(), server.Hold{Session: "forgotten", By: "ann", Why: "a case", At: start})).Must(t)
	retire(t, st)
	dropped := shrink("after one session was dropped", before)
	kit.Try(st.Forget(t.Context(), all, "forgotten", 0, later)).Must(t)
	forgotten := shrink("after another was forgotten", dropped)
	t.Logf("%d bytes, %d after one session was dropped, %d after another was forgotten", before, dropped, forgotten)
}

// retireMasked: masking leaves no row over a block; a masked line that was retired is known again by its length.
func (s suite) retireMasked(t *testing.T) {
	st := s.open(t)
	w := server.Writer{Incarnation: "i"}
	secret := `{"key":"` + needle + `"}`
	lines9 := prose(0, 200, 1000)
	lines9[9] = object(9, secret)
	b := batch("s", lines9...)
	b.Head.Writer = w
	put(t, st, b)
	rows := s.query(t, st, `SELECT count(*) FROM lines`)
	opened(t, st, "s", func(snap server.Snapshot) {
		m := &server.Masking{Stream: snap.Session().ID, At: start, Lines: []protocol.LineMask{lineMask(t, snap, 9, secret)}}
		mask(t, st, m)
	})
	kit.Equal(t, "rows that masking leaves", s.query(t, st, `SELECT count(*) FROM lines`), rows)
	n := s.query(t, st, `SELECT (SELECT count(*) FROM superseded) + (SELECT count(*) FROM lines WHERE line = 9)`)
	kit.Check(t, rows != 0 || n == 0, "%d rows beside the block", n)
	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Age: day})
	retire(t, st)
	again := batch("s", object(9, secret))
	again.Head.EndLine, again.Head.Writer = 200, ledgerOf(b)
	put(t, st, again)
	kit.Equal(t, "stored again", len(linesOf(t, st, "s", 0)), 0)
	other := batch("s", object(9, secret+" "))
	other.Head.EndLine, other.Head.Writer = 200, ledgerOf(again)
	_, ok := errors.AsType[*server.StreamError](st.Put(t.Context(), other))
	kit.Check(t, ok, "a line of another length is taken for the masked one")
	kit.Try(st.Forget(t.Context(), all, "s", 0, later)).Must(t)
	for _, table := range []string{"masked_lines", "maskings", "retired", "superseded", "lines", "blocks"} {
		kit.Equal(t, fmt.Sprintf("after forgetting, %s has rows", table), s.query(t, st, `SELECT count(*) FROM `+table),
			0)
	}
}

// retireColdBlocks: blocks of one object are retired one after the other, wholly or in part.
func (s suite) retireColdBlocks(t *testing.T) {
	if s.with == nil || s.cooling {
		t.Skip("one way is enough")
	}
	st, _ := s.onFolder(t, store.Opening{})
	old, now := prose(0, 3000, 400), prose(250, 900, 1000) // runs end within blocks
	put(t, st, batch("s", old...))
	cool(t, st)
	put(t, st, generationOf("s", 1, 250, server.Writer{}, now...))
	cool(t, st)
	n := s.query(t, st, `SELECT max(n) FROM (SELECT count(*) AS n FROM blocks WHERE object <> '' GROUP BY object) c`)
	kit.Require(t, n >= 5, "an object has only %d blocks", n)
	before, _ := proofs(t, st, "s")
	for i, what := range []string{server.RetireGenerations, server.RetireSessions} {
		addRule(t, st, server.RetentionRule{What: what, Age: day})
		retire(t, st)
		want := [][]string{listed(append(old[:250:250], now...)), nil}[i]
		kit.Equal(t, what+": lines are left", slices.Concat(linesOf(t, st, "s", 0), linesOf(t, st, "s", 1)), want)
		after, _ := proofs(t, st, "s")
		kit.Check(t, fmt.Sprint(before) == fmt.Sprint(after), "%s: digests were\n%+v, are\n%+v", what, before, after)
		kit.Equal(t, "the audit finds", audited(t, st), nil)
	}
}

// retireFails: what fails for one session is said, and ends nothing for other sessions and other users.
func (s suite) retireFails(t *testing.T) {
	if s.with == nil || s.cooling {
		t.Skip("one way is enough")
	}
	failing := true
	st := s.with(t, store.Opening{Step: func(name string) error {
		if name == "retire" && failing {
			failing = false
			return errStep
		}
		return nil
	}})
	for owner := range int64(2) {
		for _, name := range []string{"a", "b"} {
			put(t, st, batch(name, prose(0, 20, 500)...), func(b *server.Batch) { b.Owner = owner + 1 })
		}
	}
	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Age: day})
	report, err := st.Retire(t.Context(), server.RetireOptions{By: "ann", Now: later, Every: time.Hour})
	kit.Check(t, errors.Is(err, errStep) && len(report.Counts) == 2 && report.Counts[0].Sessions == 1 &&
		report.Counts[1].Sessions == 2, "%+v, %v", report.Counts, err)
	kit.Equal(t, "sessions retired, of 4 of which one failed", s.query(t, st, `SELECT count(DISTINCT stream) FROM retired`), 3)
	// One that fails again and again is not tried at every look.
	report, err = st.Retire(t.Context(), server.RetireOptions{By: "ann", Now: later, Every: time.Hour})
	kit.Check(t, err == nil && report.Busy, "applied again at once: %+v, %v", report, err)
	retire(t, st)
	kit.Equal(t, "sessions of 4 are retired", s.query(t, st, `SELECT count(DISTINCT stream) FROM retired`), 4)
}

// clockBack: what was noted by a clock that was ahead keeps nobody from applying rules, moving or sweeping once it is set
// right, though who noted it is gone.
func (s suite) clockBack(t *testing.T) {
	st, dir := s.onFolder(t, store.Opening{})
	put(t, st, batch("s", prose(0, 20, 500)...))
	ahead := time.Now().Add(400 * day).UnixMicro()
	for _, name := range []string{"cold", "retention", "retention rests", "backup gone"} {
		s.query(t, st, fmt.Sprintf(`INSERT INTO leases (name, holder, until) VALUES ('%s', 'gone', %d) RETURNING 0`, name, ahead))
	}
	kit.Equal(t, "objects were moved", cool(t, st).Objects, 1)
	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Age: 90 * day})
	kit.Try(st.Retire(t.Context(), server.RetireOptions{By: "ann", Now: later, Every: day})).Must(t)
	s.query(t, st, `UPDATE leases SET until = 0 WHERE name = 'retention rests' RETURNING 0`)
	for range 40 { // the clock of rules goes on by days
		kit.Try(st.Retire(t.Context(), server.RetireOptions{By: "ann", Now: later, Every: time.Nanosecond})).Must(t)
	}
	kit.Equal(t, "lines that rules left", len(linesOf(t, st, "s", 0)), 0)
	kit.Must(t, st.Sweep(t.Context()))
	kit.Equal(t, "objects that are left", len(inFolder(t, dir)), 0)
	for _, derived := range []int{0, 1} {
		s.query(t, st, fmt.Sprintf(`UPDATE streams SET leased = %d, derived = %d, version = 2 RETURNING 0`, ahead, derived))
		tasks := kit.Try(st.Lagging(t.Context(), 5)).Must(t)
		kit.Equal(t, "streams that are derived", len(tasks), 1)
	}
}

// retireJump: where nobody looks at what rules take, a clock that jumps ahead has them take nothing for it. By hand they take what is old by the clock.
func (s suite) retireJump(t *testing.T) {
	st := s.open(t)
	put(t, st, batch("s", prose(0, 20, 500)...))
	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Age: 90 * day})
	left := func(now time.Time, every time.Duration) int {
		t.Helper()
		kit.Try(st.Retire(t.Context(), server.RetireOptions{By: "ann", Now: now, Every: every})).Must(t)
		return len(linesOf(t, st, "s", 0))
	}
	const often = time.Nanosecond // they are due again at once
	for _, now := range []time.Duration{time.Hour, 400 * day, 400*day + time.Hour, 402 * day} {
		kit.Require(t, left(start.Add(now), often) == 20, "the clock jumped to %s after the lines: they are gone", now)
	}
	for range 10 { // a server that starts by a clock that is ahead knows what its predecessor knew
		if st = s.reopen(t, st); left(start.Add(400*day), often) != 20 {
			t.Fatal("the clock was ahead when the server started: the lines are gone")
		}
	}
	for now := start; now.Before(start.Add(91 * day)); now = now.Add(2 * day) {
		left(now, often)
	}
	kit.Equal(t, "what became old day by day is still there", left(start.Add(92*day), often), 0)
	put(t, st, batch("s2", prose(0, 20, 500)...))
	left(later, 0)
	kit.Equal(t, "by hand lines were left", len(linesOf(t, st, "s2", 0)), 0)
}
