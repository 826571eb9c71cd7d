package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"math"
	"slices"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

// DigestViews digests every generation's view in one pass over the stored lines: a view begins like the one before it,
// up to the line its generation starts at, so that the running hash is kept at each such line.
func DigestViews(ctx context.Context, snap server.Snapshot) ([]protocol.ViewDigest, error) {
	gens := snap.Generations()
	var starts []int64
	for _, g := range gens {
		starts = append(starts, g.RewoundTo)
	}
	slices.Sort(starts)
	d := digester{starts: slices.Compact(starts), kept: []running{{hash: sha256.New()}}}
	out := make([]protocol.ViewDigest, 0, len(gens))
	for i, g := range gens {
		// The view's own span is its last: everything before it is what the view before begins with.
		if err := d.rewind(g.RewoundTo); err != nil {
			return nil, err
		}
		end := max(g.EndLine, g.RewoundTo)
		if err := d.span(ctx, snap, server.Span{Generation: g.Number, From: g.RewoundTo, To: end}); err != nil {
			return nil, err
		}
		if err := d.passed(math.MaxInt64); err != nil {
			return nil, err
		}
		out = append(out, d.answer(gens[i], end))
	}
	return out, addMasked(ctx, snap, out)
}

// addMasked lists the lines of each view that the server masked by itself.
func addMasked(ctx context.Context, snap server.Snapshot, out []protocol.ViewDigest) error {
	masked, err := snap.Masked(ctx)
	if err != nil || len(masked) == 0 {
		return err
	}
	byGeneration := map[int64][]int64{}
	for _, m := range masked {
		byGeneration[m.Generation] = append(byGeneration[m.Generation], m.Line)
	}
	for i := range out {
		v, err := server.ViewOf(snap.Generations(), out[i].Generation)
		if err != nil {
			return err
		}
		for _, s := range v.Spans {
			for _, line := range byGeneration[s.Generation] {
				if s.From <= line && line < s.To {
					out[i].Masked = append(out[i].Masked, line)
				}
			}
		}
	}
	return nil
}

// digester hashes lines in order and remembers how things stood before certain lines.
type digester struct {
	starts []int64   // where to remember, ascending
	kept   []running // ascending by before; the first is before line 0
	now    running
}

// running is a digest of all lines before one. Of lines that were retired only the hash of each is known: the digest
// ends there.
type running struct {
	before   int64
	hash     hash.Hash
	layout   transcript.Layout
	lines    int64
	bytes    int64
	oversize []protocol.OversizeLine
	retired  []protocol.RetiredLines
}

func (r *running) clone() (running, error) {
	c, ok := r.hash.(hash.Cloner)
	if !ok {
		return *r, errors.New("copy hash: not supported")
	}
	h, err := c.Clone()
	if err != nil {
		return *r, fmt.Errorf("copy hash: %w", err)
	}
	out := *r
	out.hash = h
	out.oversize = slices.Clip(r.oversize) // the next append copies it
	out.retired = slices.Clone(r.retired)
	return out, nil
}

// span adds the lines of a span, those that are stored and those that were removed.
func (d *digester) span(ctx context.Context, snap server.Snapshot, s server.Span) error {
	var runs []*server.RetiredRun
	err := snap.Retired(ctx, s, false, func(r *server.RetiredRun) error {
		runs = append(runs, r)
		return nil
	})
	if err != nil {
		return err
	}
	upTo := func(line int64) error {
		for ; len(runs) > 0 && runs[0].First < line; runs = runs[1:] {
			if err := d.run(runs[0], s); err != nil {
				return err
			}
		}
		return nil
	}
	err = server.Readable(ctx, snap, s, func(l server.Line) error {
		if err := upTo(l.Index); err != nil {
			return err
		}
		return d.add(&l)
	}, func(*server.DamagedError) {}) // what is damaged is missing
	if err == nil {
		err = upTo(math.MaxInt64)
	}
	return err
}

// run adds lines that were removed.
func (d *digester) run(r *server.RetiredRun, s server.Span) error {
	for _, l := range r.Lines {
		if l.Index < s.From || l.Index >= s.To {
			continue
		}
		if err := d.passed(l.Index); err != nil {
			return err
		}
		d.now.lines, d.now.bytes = d.now.lines+1, d.now.bytes+l.Size+1
		d.now.layout.Line(l.Index)
		d.now.retire(l.Index, r.At)
	}
	return nil
}

// retire notes a removed line.
func (r *running) retire(line int64, at time.Time) {
	when := at.UTC().Format(time.RFC3339)
	if n := len(r.retired); n > 0 && r.retired[n-1].Last == line-1 && r.retired[n-1].At == when {
		r.retired[n-1].Last, r.retired[n-1].Lines = line, r.retired[n-1].Lines+1
		return
	}
	r.retired = append(r.retired, protocol.RetiredLines{First: line, Last: line, Lines: 1, At: when})
}

// rewind goes back to what stood before line to, and forgets what was kept beyond it.
func (d *digester) rewind(to int64) (err error) {
	n := len(d.kept)
	for n > 1 && d.kept[n-1].before > to {
		n--
	}
	d.kept = d.kept[:n]
	d.now, err = d.kept[n-1].clone()
	d.now.before = to
	return err
}

// passed keeps the state at every start up to line, none of which has a line between itself and now.
func (d *digester) passed(line int64) error {
	i, _ := slices.BinarySearch(d.starts, d.kept[len(d.kept)-1].before+1)
	for ; i < len(d.starts) && d.starts[i] <= line; i++ {
		c, err := d.now.clone()
		if err != nil {
			return err
		}
		c.before = d.starts[i]
		d.kept = append(d.kept, c)
	}
	return nil
}

func (d *digester) add(l *server.Line) error {
	if err := d.passed(l.Index); err != nil {
		return err
	}
	if l.Kind == server.Oversize {
		d.addOversize(l)
		return nil
	}
	d.now.hash.Write(l.Raw)
	d.now.hash.Write(lineEnd)
	d.now.layout.Line(l.Index)
	d.now.lines++
	d.now.bytes += int64(len(l.Raw)) + 1
	return nil
}

// addOversize lists a line that was not stored. A note that went bad in the store is listed without its facts, which
// no client will take for its own line.
func (d *digester) addOversize(l *server.Line) {
	o, _ := transcript.ParseOversize(l.Raw)
	d.now.layout.Oversize(l.Index, o)
	d.now.oversize = append(d.now.oversize,
		protocol.OversizeLine{Line: l.Index, Offset: o.Offset, Length: o.Length, SHA256: hex.EncodeToString(o.SHA256[:])})
}

func (d *digester) answer(g server.Generation, end int64) protocol.ViewDigest {
	a := protocol.ViewDigest{
		Generation: g.Number, RewoundTo: g.RewoundTo, Lines: d.now.lines, EndLine: end,
		Missing: end - d.now.lines, Bytes: d.now.bytes,
		EOFNewline: g.EOFNewline, Oversize: slices.Clone(d.now.oversize),
		Retired: slices.Clone(d.now.retired),
	}
	if len(d.now.retired) == 0 {
		a.SHA256 = hex.EncodeToString(d.now.layout.Sum(end, d.now.hash.Sum(nil)))
	}
	if a.Oversize == nil {
		a.Oversize = []protocol.OversizeLine{}
	}
	return a
}

var lineEnd = []byte{'\n'}

// LineHashes are the hashes of a view's lines from from up to before to, each over the line and a newline: nil where
// nothing is stored and nothing was retired.
func LineHashes(ctx context.Context, snap server.Snapshot, v server.View, from, to int64) ([]*string, error) {
	out := make([]*string, to-from)
	set := func(line int64, sum []byte) {
		text := hex.EncodeToString(sum)
		out[line-from] = &text
	}
	for _, span := range v.Between(from, to) {
		err := server.Readable(ctx, snap, span, func(l server.Line) error {
			if l.Kind != server.Oversize {
				h := sha256.New()
				h.Write(l.Raw)
				h.Write(lineEnd)
				set(l.Index, h.Sum(nil))
			}
			return nil
		}, nil)
		if err == nil {
			err = snap.Retired(ctx, span, true, func(r *server.RetiredRun) error {
				for _, l := range r.Lines {
					if span.From <= l.Index && l.Index < span.To {
						set(l.Index, l.SHA256)
					}
				}
				return nil
			})
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
