package store_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"github.com/ccship/ccship/e2e/kit"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/transcript"
)

// heldModel is one transcript on its way through the store, and what a reader must find of it at any time.
type heldModel struct {
	s    suite
	t    *testing.T
	st   full
	dir  string
	left atomic.Int64 // steps until one fails; 0: none does

	round int
	texts int // lines made, so that each is unlike the others
	made  []*heldGeneration
	snap  server.Snapshot // open for a while
	saw   [][]string      // what it has to show, by generation
}

// heldGeneration is what was stored of a generation, with the tokens that were put into it, and what rules removed.
type heldGeneration struct {
	start int64
	lines map[int64]*heldLine
}

type heldLine struct {
	kind      server.Kind
	sent, now string
	gone      bool
}

// line is the line as it is sent.
func (l *heldLine) line(i int64) server.Line {
	return server.Line{Index: i, Kind: l.kind, Raw: []byte(l.sent)}
}

// histories packs, moves to cold storage, brings back, rewinds, replaces, masks and retires one transcript in all
// orders, each of which may end at any step: every line is there as it must be, or known as retired, and a snapshot
// shows what it showed.
func (s suite) histories(t *testing.T) {
	h := &heldModel{s: s, t: t}
	h.st, h.dir = s.onFolder(t, h.opening())
	steps := map[string]func(*rapid.T){"put": h.put, "put again": h.again, "rewind": h.rewind, "replace": h.replace,
		"mask": h.mask, "seal": h.seal, "cool": h.cool, "return": h.back, "sweep": h.sweep, "look": h.look, "reopen": h.reopen,
		"retire what rewinds left": func(r *rapid.T) { h.retire(r, server.RetireGenerations) },
		"retire":                   func(r *rapid.T) { h.retire(r, server.RetireSessions) }}
	names := slices.Sorted(maps.Keys(steps))
	rapid.Check(t, func(r *rapid.T) {
		h.begin(r)
		for _, name := range rapid.SliceOfN(rapid.SampledFrom(append(names, "cool", "rewind")), 1, 14).Draw(r, "steps") {
			steps[name](r)
			h.check(r)
		}
		h.end(r)
	})
}

func (h *heldModel) opening() store.Opening {
	return store.Opening{Step: func(name string) error {
		if h.left.Load() > 0 && h.left.Add(-1) == 0 {
			return fmt.Errorf("%s: %w", name, errStep)
		}
		return nil
	}}
}

func (h *heldModel) name() string { return fmt.Sprint("s", h.round) }

func (h *heldModel) begin(r *rapid.T) {
	h.closeSnapshot(r)
	h.left.Store(0)
	h.round++
	h.made = []*heldGeneration{{lines: map[int64]*heldLine{}}}
	h.put(r)
}

// end forgets the transcript: nothing of it is left, anywhere.
func (h *heldModel) end(r *rapid.T) {
	h.closeSnapshot(r)
	kit.Try(h.st.Forget(h.t.Context(), all, h.name(), 0, later)).Must(r)
	h.s.age(h.t, h.st)
	kit.Must(r, h.st.Sweep(h.t.Context()))
	n := h.s.query(h.t, h.st, `SELECT count(*) FROM cold_objects`)
	kit.Require(r, n == 0 && len(inFolder(h.t, h.dir)) == 0,
		"after forgetting, %d objects are noted, and there are %d", n, len(inFolder(h.t, h.dir)))
}

// try does something that may end at any step.
func (h *heldModel) try(r *rapid.T, do func() error) (done bool) {
	h.left.Store(rapid.SampledFrom([]int64{0, 0, 0, 1, 2, 3, 4, 5, 6, 8, 11, 15}).Draw(r, "step that fails"))
	err := do()
	h.left.Store(0)
	if err != nil && !errors.Is(err, errStep) {
		r.Fatal(err)
	}
	return err == nil
}

// untouched does something that changes no digest.
func (h *heldModel) untouched(r *rapid.T, do func() error) (done bool) {
	before, _ := proofs(h.t, h.st, h.name())
	done = h.try(r, do)
	after, _ := proofs(h.t, h.st, h.name())
	kit.Require(r, fmt.Sprint(before) == fmt.Sprint(after), "digests were\n%+v, are\n%+v", before, after)
	return done
}

func (h *heldModel) newest() (n int64, g *heldGeneration) {
	return int64(len(h.made)) - 1, h.made[len(h.made)-1]
}

func (g *heldGeneration) end() int64 {
	end := g.start
	for i := range g.lines {
		end = max(end, i+1)
	}
	return end
}

// text is a line's bytes. Some have a secret.
func (h *heldModel) text(size int) string {
	h.texts++
	what := fmt.Sprintf("%d %x ", h.texts, sha256.Sum256(fmt.Append(nil, h.texts)))
	if h.texts%7 == 0 {
		what += needle + " "
	}
	return fmt.Sprintf(`{"n":%d,"text":"%s"}`, h.texts, what+strings.Repeat("x", size))
}

func (h *heldModel) store(r *rapid.T, generation int64, lines []server.Line) {
	g := h.made[generation]
	b := generationOf(h.name(), generation, g.start, server.Writer{}, lines...)
	if b.Head.EndLine = max(b.Head.EndLine, g.end()); len(lines) == 0 {
		b.Head.EndLine = g.start
	}
	kit.Must(r, h.st.Put(h.t.Context(), b))
}

// put goes on with the newest generation.
func (h *heldModel) put(r *rapid.T) {
	n, g := h.newest()
	count, size := rapid.IntRange(0, 80).Draw(r, "lines"), rapid.SampledFrom([]int{10, 3000, 9000}).Draw(r, "size")
	if len(h.made) == 1 && len(g.lines) == 0 {
		count++
	}
	var lines []server.Line
	for i := g.end(); len(lines) < count; i++ {
		l := &heldLine{}
		if l.sent = h.text(size); h.texts%11 == 5 { // a note, which rules leave
			l.kind, l.sent = server.Oversize, string(transcript.AppendOversize(nil, i, 5, 9, [32]byte{1}))
		}
		l.now = l.sent
		lines, g.lines[i] = append(lines, l.line(i)), l
	}
	h.store(r, n, lines)
}

// pick draws a line that was stored. ok is false if there is none.
func (h *heldModel) pick(r *rapid.T, fit func(*heldLine) bool) (generation, line int64, ok bool) {
	var all [][2]int64
	for n, g := range h.made {
		for _, i := range slices.Sorted(maps.Keys(g.lines)) {
			if fit(g.lines[i]) {
				all = append(all, [2]int64{int64(n), i})
			}
		}
	}
	if len(all) == 0 {
		return 0, 0, false
	}
	x := rapid.SampledFrom(all).Draw(r, "line")
	return x[0], x[1], true
}

// again sends some lines again: nothing changes.
func (h *heldModel) again(r *rapid.T) {
	n, from, ok := h.pick(r, func(*heldLine) bool { return true })
	if !ok {
		return
	}
	var lines []server.Line
	for i := from; len(lines) < 30 && h.made[n].lines[i] != nil; i++ {
		lines = append(lines, h.made[n].lines[i].line(i))
	}
	h.untouched(r, func() error { h.store(r, n, lines); return nil })
}

func (h *heldModel) rewind(r *rapid.T) {
	if len(h.made) == 5 {
		return
	}
	_, g := h.newest()
	to := rapid.Int64Range(0, g.end()).Draw(r, "to")
	h.made = append(h.made, &heldGeneration{start: to, lines: map[int64]*heldLine{}})
	h.put(r)
}

// replace stores other bytes for a line, as a client without a ledger may.
func (h *heldModel) replace(r *rapid.T) {
	n, i, ok := h.pick(r, func(l *heldLine) bool { return l.kind == server.Object })
	if !ok {
		return
	}
	text := h.text(20)
	h.store(r, n, []server.Line{object(i, text)})
	h.made[n].lines[i] = &heldLine{sent: text, now: text}
}

func (h *heldModel) mask(r *rapid.T) {
	n, i, ok := h.pick(r, func(l *heldLine) bool { return !l.gone && strings.Contains(l.now, needle) })
	if !ok {
		return
	}
	l := h.made[n].lines[i]
	opened(h.t, h.st, h.name(), func(snap server.Snapshot) {
		at := lineMask(h.t, snap, i, l.now)
		at.Generation = n
		mask(h.t, h.st, &server.Masking{Stream: snap.Session().ID, Lines: []protocol.LineMask{at}})
	})
	l.now = masked(l.now)
}

func (h *heldModel) seal(r *rapid.T) {
	h.untouched(r, func() error { _, err := h.st.Seal(h.t.Context(), endOfTime); return err })
}

func (h *heldModel) cool(r *rapid.T) {
	h.untouched(r, func() error {
		_, err := h.st.Seal(h.t.Context(), endOfTime)
		if err == nil {
			_, err = h.st.Cool(h.t.Context(), endOfTime)
		}
		return err
	})
}

func (h *heldModel) back(r *rapid.T) {
	h.untouched(r, func() error {
		done, err := h.st.Return(h.t.Context(), start.Add(-day), endOfTime, func(server.Returned) {})
		kit.Require(r, done.Damaged <= 0, "%d objects are damaged", done.Damaged)
		return err
	})
}

func (h *heldModel) sweep(r *rapid.T) {
	h.untouched(r, func() error { return h.st.Sweep(h.t.Context()) })
}

// retire applies a rule, and if it ends early learns what it took.
func (h *heldModel) retire(r *rapid.T, what string) {
	id := addRule(h.t, h.st, server.RetentionRule{What: what, Age: day})
	defer func() { kit.Should(r, h.st.RemoveRetentionRule(h.t.Context(), id)) }()
	done := h.untouched(r, func() error {
		_, err := h.st.Retire(h.t.Context(), server.RetireOptions{By: "ann", Now: later})
		return err
	})
	taken := h.retired(r)
	for n, g := range h.made {
		for i, l := range g.lines {
			must := l.kind == server.Object && (what == server.RetireSessions || h.superseded(n, i))
			if was := taken[n][i] != nil; was && !must && !l.gone || done && must && !was {
				r.Fatalf("line %d of generation %d: retired is %v", i, n, was)
			} else if was {
				l.gone = true
			}
		}
	}
}

// superseded reports whether the newest view shows another line, or none, in a line's place.
func (h *heldModel) superseded(n int, i int64) bool {
	return slices.ContainsFunc(h.made[n+1:], func(later *heldGeneration) bool { return later.start <= i })
}

// retired are the hashes of retired lines, by generation and line.
func (h *heldModel) retired(r *rapid.T) (out []map[int64][]byte) {
	opened(h.t, h.st, h.name(), func(snap server.Snapshot) {
		for n := range h.made {
			taken := map[int64][]byte{}
			span := server.Span{Generation: int64(n), To: 1 << 40}
			kit.Must(r, snap.Retired(h.t.Context(), span, true, func(run *server.RetiredRun) error {
				for _, l := range run.Lines {
					taken[l.Index] = slices.Clone(l.SHA256)
				}
				return nil
			}))
			out = append(out, taken)
		}
	})
	return out
}

// shown are the lines of all generations, as dump gives them.
func (h *heldModel) shown() (out [][]string) {
	for _, g := range h.made {
		var list []string
		for _, i := range slices.Sorted(maps.Keys(g.lines)) {
			if l := g.lines[i]; !l.gone {
				list = append(list, fmt.Sprintf("%d:%s:%s", i, l.kind, l.now))
			}
		}
		out = append(out, list)
	}
	return out
}

// check compares everything that can be read.
func (h *heldModel) check(r *rapid.T) {
	opened(h.t, h.st, h.name(), func(snap server.Snapshot) { h.compare(r, "now", snap, h.shown()) })
	for n, taken := range h.retired(r) {
		for i, l := range h.made[n].lines {
			sum := taken[i]
			kit.Require(r, (sum != nil) == l.gone && (sum == nil || slices.Equal(sum, lines.RetiredHash([]byte(l.now)))),
				"line %d of generation %d is retired: %v, and should be %v", i, n, sum != nil, l.gone)
		}
	}
	if h.snap != nil {
		h.compare(r, "the snapshot", h.snap, h.saw)
	}
	kit.Equal(r, "the audit finds", audited(h.t, h.st), nil)
}

func (h *heldModel) compare(r *rapid.T, what string, snap server.Snapshot, want [][]string) {
	for n := range want {
		var got []string
		err := snap.Lines(h.t.Context(), server.Span{Generation: int64(n), To: 1 << 40}, func(l server.Line) error {
			got = append(got, fmt.Sprintf("%d:%s:%s", l.Index, l.Kind, l.Raw))
			return nil
		})
		if err != nil || !slices.Equal(got, want[n]) {
			r.Fatalf("%s: generation %d has %d lines, and should have %d: %v", what, n, len(got), len(want[n]), err)
		}
	}
}

// look opens a snapshot, or closes the one that is open.
func (h *heldModel) look(r *rapid.T) {
	if h.snap != nil {
		h.closeSnapshot(r)
		return
	}
	snap := kit.Try(h.st.Open(h.t.Context(), server.Ref{SessionID: h.name()})).Must(r)
	h.snap, h.saw = snap, h.shown()
}

func (h *heldModel) closeSnapshot(r *rapid.T) {
	if h.snap == nil {
		return
	}
	err := h.snap.Close()
	if h.snap = nil; err != nil {
		r.Fatal(err)
	}
}

// reopen forgets what is in memory.
func (h *heldModel) reopen(r *rapid.T) {
	h.closeSnapshot(r)
	h.st = h.s.again(h.t, h.st, h.opening())
}
