package store_test

import (
	"bytes"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// heads: of a line that is longer than its reader wants, the beginning and the length are read, wherever it is.
func (s suite) heads(t *testing.T) {
	st := s.open(t)
	all := []server.Line{object(0, `{"n":0}`), object(1, `{"n":"`+string(bytes.Repeat([]byte("1234567"), 1<<20))+`"}`), object(2, `{"n":2}`)}
	for _, l := range all {
		put(t, st, batch("s", l))
	}
	check := func(snap server.Snapshot, when string, most int64) {
		t.Helper()
		n := 0
		err := snap.Lines(t.Context(), server.Span{To: 3, Most: most}, func(l server.Line) error {
			want := all[n].Raw
			kit.Check(t, l.Index == int64(n) && l.Size() == int64(len(want)) && bytes.HasPrefix(want, l.Raw),
				"%s: line %d of %d bytes has %d and %d more", when, l.Index, len(want), len(l.Raw), l.Cut)
			huge := int64(len(want)) > most && n == 1
			kit.Check(t, (!huge || most <= 0 || len(l.Raw) <= server.LongHead) && (l.Size() > most || l.Cut <= 0),
				"%s: of line %d with at most %d bytes %d are read", when, l.Index, most, len(l.Raw))
			n++
			return nil
		})
		kit.Check(t, err == nil && n == len(all), "%s: %d lines, %v", when, n, err)
	}
	for _, when := range []string{"as rows", "as blocks"} {
		snap := openSession(t, st, "s")
		for _, most := range []int64{0, 1, 7, 1 << 20, 5 << 20, 64 << 20} {
			check(snap, when, most)
		}
		for n, l := range all {
			var got []byte
			err := server.Pieces(t.Context(), snap, 0, int64(n), func(p server.Line) error {
				if got = append(got, p.Raw...); len(p.Raw) > server.LongHead || int64(len(got))+p.Cut != int64(len(l.Raw)) {
					t.Errorf("%s: a piece of line %d has %d bytes, %d follow", when, n, len(p.Raw), p.Cut)
				}
				return nil
			})
			kit.Check(t, err == nil && bytes.Equal(got, l.Raw), "%s: line %d in pieces has %d bytes, %v", when, n, len(got), err)
		}
		kit.Err(t, when+": a line that is", server.ErrNotFound)(server.Pieces(t.Context(), snap, 0, 3, nil))
		seal(t, st, endOfTime)
	}
	x := openSession(t, st, "s")
	at, err := st.Received(t.Context(), x.Session().ID, x.Epochs()[0].ID, 0, 1)
	kit.Check(t, err == nil && at.Equal(start), "the huge line was received at %v, %v", at, err)
}
