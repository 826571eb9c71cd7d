package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/audit"
	"github.com/ccship/ccship/server/store"
)

// sealing packs every line as soon as it is stored: the contract holds for lines in blocks too.
type sealing struct{ full }

func (s sealing) Put(ctx context.Context, b *server.Batch) error {
	if err := s.full.Put(ctx, b); err != nil {
		return err
	}
	_, err := s.Seal(context.WithoutCancel(ctx), endOfTime)
	return err
}

var endOfTime = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// sealed is a suite on stores that pack everything at once.
func (s suite) sealed() suite {
	return suite{
		sealing: true,
		open:    func(t *testing.T) full { return sealing{s.open(t)} },
		reopen:  func(t *testing.T, st full) full { return sealing{s.reopen(t, st.(sealing).full)} },
		query:   func(t *testing.T, st full, query string) int64 { return s.query(t, st.(sealing).full, query) },
	}
}

// seal packs everything and answers how many blocks that made.
func seal(t *testing.T, s full, before time.Time) int64 {
	t.Helper()
	return kit.Try(s.Seal(t.Context(), before)).Must(t)
}

// prose is count lines of about size bytes that compress like text.
func prose(from, count int64, size int) (out []server.Line) {
	r := rand.New(rand.NewPCG(uint64(from), uint64(count)))
	for i := range count {
		var text strings.Builder
		fmt.Fprintf(&text, `{"line":%d,"text":"`, from+i)
		for text.Len() < size {
			fmt.Fprintf(&text, "word%d ", r.IntN(5000))
		}
		out = append(out, object(from+i, text.String()+`"}`))
	}
	return out
}

func listed(lines []server.Line) (out []string) {
	return kit.Each(lines, func(l server.Line) string { return fmt.Sprintf("%d:%s:%s", l.Index, l.Kind, l.Raw) })
}

// blocks: an import is packed at once, what comes alive later, and both read as one.
func (s suite) blocks(t *testing.T) {
	st := s.open(t)
	all := prose(0, 700, 1000)
	put(t, st, batch("s", all[:500]...))
	n, rows := s.query(t, st, `SELECT count(*) FROM blocks`), s.query(t, st, `SELECT count(*) FROM lines`)
	kit.Check(t, n >= 3 && n <= 6 && rows == 0, "an import of 500 KB is %d blocks and %d rows", n, rows)
	for _, l := range all[500:] {
		put(t, st, batch("s", l))
	}
	check := func(when string) {
		t.Helper()
		snap := openSession(t, st, "s")
		kit.Equal(t, fmt.Sprintf("%s: lines, want %d", when, len(all)), dump(t, snap, 0), listed(all))
		for _, span := range []server.Span{{From: 3, To: 4}, {From: 120, To: 260}, {From: 499, To: 501}, {From: 650, To: 9999}} {
			var got []server.Line
			err := snap.Lines(t.Context(), span, func(l server.Line) error {
				l.Raw = slices.Clone(l.Raw)
				got = append(got, l)
				return nil
			})
			want := all[span.From:min(span.To, 700)]
			n, notes, countErr := snap.Count(t.Context(), span)
			kit.Check(t, slices.Equal(listed(got), listed(want)) && int(n) == len(want) && notes == 0 && err == nil &&
				countErr == nil, "%s: %v has %d lines, counted %d and %d: %v, %v", when, span, len(got), n, notes, err, countErr)
		}
		kit.Equal(t, when+": bytes are counted", snap.Session().Bytes, size(all))
	}
	check("with a hot tail")
	seal(t, st, start) // the tail is longer than a block
	rows = s.query(t, st, `SELECT count(*) FROM lines`)
	kit.Check(t, rows != 0 && rows <= 150, "%d rows are left of a live stream", rows)
	check("with full blocks")
	seal(t, st, endOfTime)
	kit.Equal(t, "rows are left of an idle stream", s.query(t, st, `SELECT count(*) FROM lines`), 0)
	check("packed")
	put(t, st, batch("s", all...)) // again
	kit.Equal(t, "the same lines again were stored", seal(t, st, endOfTime), 0)
	check("after a repetition")
	at, err := st.Received(t.Context(), openSession(t, st, "s").Session().ID, openSession(t, st, "s").Epochs()[0].ID, 0, 77)
	kit.Check(t, err == nil && at.Equal(start), "line 77 was received at %v: %v", at, err)
}

// blockTails: the end of an import is packed at once, what is too little for that or has few lines is not.
func (s suite) blockTails(t *testing.T) {
	st := s.open(t)
	for _, x := range []struct {
		session     string
		count       int64
		size        int
		made, stays int64
	}{{"end", 20, 1000, 1, 0}, {"few", 3, 8000, 0, 3}, {"little", 20, 100, 0, 20}} {
		was := s.query(t, st, `SELECT count(*) FROM blocks`)
		put(t, st, batch(x.session, prose(0, x.count, x.size)...))
		made, rows := s.query(t, st, `SELECT count(*) FROM blocks`)-was, s.query(t, st, `SELECT count(*) FROM lines`)
		kit.Check(t, made == x.made && rows == x.stays, "%s: %d lines of %d bytes are %d blocks and %d rows", x.session,
			x.count, x.size, made, rows)
		seal(t, st, endOfTime)
	}
}

func size(lines []server.Line) (n int64) {
	for _, l := range lines {
		n += int64(len(l.Raw)) + 1
	}
	return n
}

// blockConflicts: other bytes for packed lines are refused, or replace them for clients without a ledger.
func (s suite) blockConflicts(t *testing.T) {
	st := s.open(t)
	all := prose(0, 200, 1000)
	put(t, st, batch("s", all...))
	wrong := batch("s", all[3], object(4, "other"), all[5])
	wrong.Head.Writer = server.Writer{Incarnation: "i"}
	err := st.Put(t.Context(), wrong)
	refused, ok := errors.AsType[*server.StreamError](err)
	kit.Check(t, ok && refused.Line == 4 && refused.Code == protocol.CodeOtherBytes,
		"other bytes from a client with a ledger: %v", err)
	kit.Equal(t, "rows after a refusal", s.query(t, st, `SELECT count(*) FROM lines`), 0)
	put(t, st, batch("s", all[3], object(4, "other"), all[5], object(200, "new")))
	was := all[4]
	all[4] = object(4, "other")
	all = append(all, object(200, "new"))
	for range 2 { // an override row stays one, whatever is packed
		snap := openSession(t, st, "s")
		kit.Equal(t, "lines", dump(t, snap, 0), listed(all))
		var old []server.Line
		err := snap.Replaced(t.Context(), server.Span{To: 999}, func(l server.Line, _ time.Time) error {
			old = append(old, l)
			return nil
		})
		kit.Should(t, err)
		kit.Equal(t, "replaced", listed(old), listed([]server.Line{was}))
		n, _, err := snap.Count(t.Context(), server.Span{To: 999})
		kit.Check(t, n == 201 && err == nil, "%d lines are counted: %v", n, err)
		kit.Equal(t, "bytes are counted", snap.Session().Bytes, size(all))
		seal(t, st, endOfTime)
	}
	put(t, st, batch("s", was)) // and back again
	kit.Equal(t, "line 4 is", dump(t, openSession(t, st, "s"), 0)[4], listed([]server.Line{was})[0])
	put(t, st, batch("s", all[9], object(9, "later"))) // as it is, and then with other bytes
	snap := openSession(t, st, "s")
	kit.Equal(t, "line 9 is", dump(t, snap, 0)[9], "9:object:later")
	kit.Has(t, "replaced", strings.Join(replacedOf(t, snap), "\n"), string(all[9].Raw))
	gone, err := st.Forget(t.Context(), server.Scope{All: true}, "s", 0, start)
	kit.Check(t, err == nil && gone.Lines == 201, "forgotten: %+v, %v", gone, err)
	kit.Equal(t, "blocks are left", s.query(t, st, `SELECT count(*) FROM blocks`), 0)
}

// blockGaps: a line that comes late lies between those of a block.
func (s suite) blockGaps(t *testing.T) {
	st := s.open(t)
	all := prose(0, 300, 1000)
	late := []server.Line{all[17], all[60], all[299]}
	var first []server.Line
	for _, l := range all[:299] {
		if l.Index != 17 && l.Index != 60 {
			first = append(first, l)
		}
	}
	put(t, st, batch("s", first...))
	for _, l := range late {
		put(t, st, batch("s", l))
		seal(t, st, endOfTime)
	}
	snap := openSession(t, st, "s")
	kit.Equal(t, fmt.Sprint("lines, want ", len(all)), dump(t, snap, 0), listed(all))
	n, _, err := snap.Count(t.Context(), server.Span{To: 999})
	kit.Check(t, n == 300 && err == nil, "%d lines are counted: %v", n, err)
}

// blockMask: masking replaces a block, also under a row in force.
func (s suite) blockMask(t *testing.T) {
	st := s.open(t)
	all := prose(0, 200, 1000)
	secret := `{"key":"` + needle + `"}`
	all[9] = object(9, secret)
	put(t, st, batch("s", all...))
	snap := openSession(t, st, "s")
	m := &server.Masking{Stream: snap.Session().ID, Lines: []protocol.LineMask{lineMask(t, snap, 9, secret)}}
	done := mask(t, st, m)
	kit.Require(t, done.Lines == 1, "masked %+v", done)
	all[9] = object(9, masked(secret))
	for range 2 {
		kit.Equal(t, "lines", dump(t, openSession(t, st, "s"), 0), listed(all))
		put(t, st, batch("s", object(9, secret))) // comes again as it was
	}
	put(t, st, batch("s", object(9, "other"))) // goes over it: the block still has the token
	put(t, st, batch("s", object(11, secret)))
	put(t, st, batch("s", object(11, "another")))
	m.Lines = []protocol.LineMask{lineMask(t, snap, 11, secret)}
	mask(t, st, m)
	snap = openSession(t, st, "s")
	got := strings.Join(replacedOf(t, snap), "") + strings.Join(dump(t, snap, 0), "")
	kit.Check(t, !strings.Contains(got, needle), "the secret is left")
	all[9], all[11] = object(9, "other"), object(11, "another")
	kit.Equal(t, "lines", dump(t, snap, 0), listed(all))
}

// damage breaks a bit of the first block's bytes.
func (s suite) damage(t *testing.T) {
	st := s.open(t)
	all := prose(0, 700, 1000)
	put(t, st, batch("s", all...))
	b := batch("other", prose(0, 5, 100)...)
	put(t, st, b)
	last := s.query(t, st, `SELECT min(last) FROM blocks WHERE lines > 5`)
	s.query(t, st, `UPDATE blocks SET data = data || data WHERE first = 0 AND lines > 5 RETURNING 0`)
	snap := openSession(t, st, "s")
	var named []server.Span
	var got []server.Line
	err := server.Readable(t.Context(), snap, server.Span{From: 2, To: 9999}, func(l server.Line) error {
		l.Raw = slices.Clone(l.Raw)
		got = append(got, l)
		return nil
	}, func(d *server.DamagedError) { named = append(named, d.Span) })
	kit.Check(t, err == nil && slices.Equal(listed(got), listed(all[last+1:])), "of 700 lines %d can be read: %v", len(got), err)
	kit.Equal(t, "damaged", named, []server.Span{{From: 2, To: last + 1}})
	var found []string
	kit.Try(audit.Run(t.Context(), st, func(f audit.Finding) { found = append(found, f.SessionID+": "+f.Problem) }, func(audit.Progress) {})).Must(t)
	kit.Equal(t, "the audit found", found, []string{fmt.Sprintf("s: lines 1 to %d are damaged", last+1)})
	digests, err := audit.DigestViews(t.Context(), snap)
	kit.Check(t, err == nil && digests[0].Missing == last+1, "digests of what can be read: %+v, %v", digests, err)
	put(t, st, batch("s", all...)) // sent again
	kit.Equal(t, "sent again lines can be read", dump(t, openSession(t, st, "s"), 0), listed(all))
}

// sealMeanwhile: lines that are stored, replaced and read while others pack them are all there.
func (s suite) sealMeanwhile(t *testing.T) {
	st := s.open(t)
	all := prose(0, 400, 2000)
	ctx, cancel := context.WithCancel(t.Context())
	var packers, writers sync.WaitGroup
	for range 2 {
		packers.Go(func() {
			for ctx.Err() == nil {
				if _, err := st.Seal(ctx, endOfTime); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for w := range 4 {
		writers.Go(func() {
			session := fmt.Sprint("s", w%2)
			for i := 0; i < len(all); i += 10 {
				kit.Should(t, st.Put(ctx, batch(session, all[i:i+10]...)))
			}
		})
	}
	writers.Wait()
	cancel()
	packers.Wait()
	for w := range 2 {
		kit.Equal(t, fmt.Sprintf("session %d has lines", w), dump(t, openSession(t, st, fmt.Sprint("s", w)), 0), listed(all))
	}
}

// sealSteps: whichever step of packing fails, every line is there, and the next pass packs the rest.
func (s suite) sealSteps(t *testing.T) {
	failing, seen := "", map[string]int{}
	st := s.with(t, store.Opening{Step: func(name string) error {
		if seen[name]++; name == failing {
			return errStep
		}
		return nil
	}})
	for i, step := range []string{"write blocks", "remove packed lines", "commit blocks", "committed blocks"} {
		name := fmt.Sprint("s", i)
		lines := prose(0, 7, 1000)
		put(t, st, batch(name, lines...))
		failing = step
		_, err := st.Seal(t.Context(), endOfTime)
		kit.Require(t, errors.Is(err, errStep), "step %q did not fail: %v", step, err)
		left := s.query(t, st, `SELECT count(*) FROM lines`)
		done := step == "committed blocks"
		kit.Check(t, done == (left == 0) && (done || left == 7), "after %q failed %d lines are not packed", step, left)
		if got := dumpOf(t, st, name); !slices.Equal(got, listed(lines)) || len(audited(t, st)) > 0 {
			t.Errorf("after %q failed %d lines are there: %q", step, len(got), audited(t, st))
		}
		failing = ""
		seal(t, st, endOfTime)
		got := dumpOf(t, st, name)
		kit.Check(t, slices.Equal(got, listed(lines)) && s.query(t, st, `SELECT count(*) FROM lines`) <= 0,
			"after %q failed and packing went on %d lines are there", step, len(got))
	}
}

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
