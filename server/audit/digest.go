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

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

// generationDigest is proof of one view: SHA256 over each stored line and a newline, in order.
type Digest struct {
	Generation int64          `json:"generation"`
	RewoundTo  int64          `json:"rewound_to"`
	Lines      int64          `json:"lines"`    // stored
	EndLine    int64          `json:"end_line"` // of the file
	Missing    int64          `json:"missing"`  // of them not stored, oversize ones among them
	Bytes      int64          `json:"bytes"`    // stored, a newline counted for each line
	SHA256     string         `json:"sha256"`
	EOFNewline bool           `json:"eof_newline"`
	Oversize   []OversizeLine `json:"oversize"`
}

// oversizeLine is a line that was longer than the client's cap.
type OversizeLine struct {
	Line   int64  `json:"line"`
	Offset int64  `json:"offset"`
	Length int64  `json:"length"`
	SHA256 string `json:"sha256"`
}

// digestAll digests every generation's view in one pass over the stored lines: a view begins like the one before it,
// up to the line its generation starts at, so that the running hash is kept at each such line.
func Digests(ctx context.Context, snap server.Snapshot) ([]Digest, error) {
	gens := snap.Generations()
	var starts []int64
	for _, g := range gens {
		starts = append(starts, g.RewoundTo)
	}
	slices.Sort(starts)
	d := digester{starts: slices.Compact(starts), kept: []running{{hash: sha256.New()}}}
	out := make([]Digest, 0, len(gens))
	for i, g := range gens {
		// The view's own span is its last: everything before it is what the view before begins with.
		if err := d.rewind(g.RewoundTo); err != nil {
			return nil, err
		}
		end := max(g.EndLine, g.RewoundTo)
		if err := snap.Lines(ctx, server.Span{Generation: g.Number, From: g.RewoundTo, To: end}, d.add); err != nil {
			return nil, err
		}
		if err := d.passed(math.MaxInt64); err != nil {
			return nil, err
		}
		out = append(out, d.answer(gens[i], end))
	}
	return out, nil
}

// digester hashes lines in order and remembers how things stood before certain lines.
type digester struct {
	starts []int64   // where to remember, ascending
	kept   []running // ascending by before; the first is before line 0
	now    running
}

// running is a digest of all lines before one.
type running struct {
	before   int64
	hash     hash.Hash
	lines    int64
	bytes    int64
	oversize []OversizeLine
}

func (r running) clone() (running, error) {
	c, ok := r.hash.(hash.Cloner)
	if !ok {
		return r, errors.New("copy hash: not supported")
	}
	h, err := c.Clone()
	if err != nil {
		return r, fmt.Errorf("copy hash: %w", err)
	}
	r.hash = h
	r.oversize = slices.Clip(r.oversize) // the next append copies it
	return r, nil
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

func (d *digester) add(l server.Line) error {
	if err := d.passed(l.Index); err != nil {
		return err
	}
	if l.Kind == server.Oversize {
		d.addOversize(l)
		return nil
	}
	d.now.hash.Write(l.Raw)
	d.now.hash.Write(lineEnd)
	d.now.lines++
	d.now.bytes += int64(len(l.Raw)) + 1
	return nil
}

// addOversize lists a line that was not stored. A note that went bad in the store is listed without its facts, which
// no client will take for its own line.
func (d *digester) addOversize(l server.Line) {
	o, _ := transcript.ParseOversize(l.Raw)
	d.now.oversize = append(d.now.oversize,
		OversizeLine{l.Index, o.Offset, o.Length, hex.EncodeToString(o.SHA256[:])})
}

func (d *digester) answer(g server.Generation, end int64) Digest {
	a := Digest{
		Generation: g.Number, RewoundTo: g.RewoundTo, Lines: d.now.lines, EndLine: end,
		Missing: end - d.now.lines, Bytes: d.now.bytes, SHA256: hex.EncodeToString(d.now.hash.Sum(nil)),
		EOFNewline: g.EOFNewline, Oversize: slices.Clone(d.now.oversize),
	}
	if a.Oversize == nil {
		a.Oversize = []OversizeLine{}
	}
	return a
}

var lineEnd = []byte{'\n'}
