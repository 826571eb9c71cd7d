package state

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

// PastGeneration is a generation that a rewind ended: what was known of the file before bytes were taken out of it.
// With the marks that were cut then, verify can still prove what a server has of it.
type PastGeneration struct {
	Dest       string
	Generation uint32
	Next       uint32      // the generation that took its place
	RewoundTo  int64       // its first line
	Cursor     tail.Cursor // where it ended
	CutOffset  int64       // bytes before it belong to the next generation too
	CutLine    int64
	LeftOut    bool        // some of its lines may never have been sent: excluded, or sent before ccship came
	Unmarked   bool        // there were too many marks to keep
	Marks      []tail.Mark // beyond CutOffset
}

// Limits of what is kept of one file's past.
const (
	maxPast      = 500
	maxPastMarks = 4096 // some 256 MiB of transcript
)

const pastVersion = 1

func pastKey(id tail.FileID, generation uint32) []byte {
	return binary.BigEndian.AppendUint32(fileKey(id), generation)
}

// putPast keeps the generation that a step's rewind ends. It runs before moveMarks, while the marks that the rewind
// cuts are still there.
func (t *Tx) putPast(s *Step, old *fileRow) error {
	if s.From == s.Prev || s.Prev.Line == 0 {
		return nil
	}
	id := s.Tracked.File.ID
	p := PastGeneration{
		Generation: s.Prev.Generation, Next: s.From.Generation, RewoundTo: old.routing.RewoundTo, Cursor: s.Prev,
		CutOffset: s.From.Offset, CutLine: s.From.Line, LeftOut: old.routing.Excluded > 0 || old.routing.SentBefore > 0,
	}
	err := eachMark(t.marks, id, s.From.Offset+1, func(m tail.Mark) { p.Marks = append(p.Marks, m) })
	if err != nil {
		return err
	}
	if len(p.Marks) > maxPastMarks {
		p.Marks, p.Unmarked = nil, true
	}
	generations := t.Bucket(bucketGenerations)
	key := pastKey(id, p.Generation)
	v := kv.SealRow(pastVersion, key, 128+24*len(p.Marks), func(c *kv.Codec) { p.layout(c, &old.dest) })
	if err := t.Put("put past", generations, key, v); err != nil {
		return err
	}
	return t.trimPast(id, maxPast)
}

// trimPast removes the oldest generations of a file until so many are left.
func (t *Tx) trimPast(id tail.FileID, left int) error {
	generations := t.Bucket(bucketGenerations)
	keys := kv.Keys(generations, fileKey(id))
	for _, k := range keys[:max(0, len(keys)-left)] {
		if err := t.Delete("delete past", generations, k); err != nil {
			return err
		}
	}
	return nil
}

// dropPast removes the generations of a file from one to another.
func (t *Tx) dropPast(id tail.FileID, first, last uint32) error {
	generations := t.Bucket(bucketGenerations)
	for _, k := range kv.Keys(generations, fileKey(id)) {
		if g := binary.BigEndian.Uint32(k[len(k)-4:]); g < first || g > last {
			continue
		}
		if err := t.Delete("delete past", generations, k); err != nil {
			return err
		}
	}
	return nil
}

func decodePast(key, v []byte) (p PastGeneration, dest uint32, err error) {
	if len(key) != 12 {
		return p, 0, fmt.Errorf("%w: generation key of %d bytes", ErrCorrupt, len(key))
	}
	p.Generation = binary.BigEndian.Uint32(key[8:])
	err = kv.ReadRow("past generation", pastVersion, key, v, func(c *kv.Codec) { p.layout(c, &dest) })
	return p, dest, err
}

func (p *PastGeneration) layout(c *kv.Codec, dest *uint32) {
	kv.Number(c, dest, &p.Next)
	kv.Number(c, &p.RewoundTo)
	layoutCursor(c, &p.Cursor)
	kv.Number(c, &p.CutOffset, &p.CutLine)
	c.Flags(&p.LeftOut, &p.Unmarked)
	kv.List(c, &p.Marks, func(m *tail.Mark) {
		kv.Number(c, &m.Offset, &m.Line)
		c.Fixed(&m.Hash)
	})
}

// History is everything known of how a file was read, as of one moment.
type History struct {
	Tracked tail.Tracked
	Marks   []tail.Mark      // of the current generation
	Past    []PastGeneration // newest first
}

// History returns a file's history. ErrUnknownFile: the state has no row for it.
func (f *Files) History(ctx context.Context, id tail.FileID) (History, error) {
	var h History
	err := f.db.View(ctx, func(tx *kv.Snapshot) error {
		v := tx.Bucket(bucketFiles).Get(fileKey(id))
		if v == nil {
			return ErrUnknownFile
		}
		r, err := decodeFileRow(id, v, nil)
		if err != nil {
			return err
		}
		h.Tracked = r.tracked
		err = eachMark(tx.Bucket(bucketMarks), id, 0, func(m tail.Mark) { h.Marks = append(h.Marks, m) })
		if err != nil {
			return err
		}
		h.Past, err = f.past(tx, id)
		return err
	})
	if err != nil {
		return History{}, fmt.Errorf("read history of file: %w", err)
	}
	slices.Reverse(h.Past)
	return h, nil
}

// past reads the generations of a file that ended, oldest first.
func (f *Files) past(tx *kv.Snapshot, id tail.FileID) (all []PastGeneration, err error) {
	err = kv.Each(tx.Bucket(bucketGenerations), fileKey(id), func(k, v []byte) error {
		p, dest, err := decodePast(k, v)
		p.Dest = f.db.index.destURL(dest)
		all = append(all, p)
		return err
	})
	return all, err
}

// MarksOf returns the marks that a generation had when it ended. ok is false when some of them are lost, because a
// generation between it and the current one is missing. A generation shares the marks before its cut with the next one,
// so they are put together going backwards from the current marks.
func (h *History) MarksOf(generation uint32) (marks []tail.Mark, ok bool) {
	marks, above := h.Marks, h.Tracked.Cursor.Generation
	for _, p := range h.Past {
		if above == generation {
			break
		}
		if p.Next != above || p.Unmarked {
			return nil, false
		}
		keep, _ := slices.BinarySearchFunc(marks, p.CutOffset+1, func(m tail.Mark, at int64) int {
			return cmp.Compare(m.Offset, at)
		})
		marks, above = append(slices.Clone(marks[:keep]), p.Marks...), p.Generation
	}
	return marks, above == generation
}

// OddKind says why a line is not an entry of its own record.
type OddKind uint8

// A plain server gets none of them.
const (
	OddBlank     OddKind = iota // or a record that the protocol reserves
	OddMalformed                // no JSON
	OddOversize                 // longer than the cap
	oddKinds
)

// OddLines are the odd lines of a file up to its cursor, ascending, in packed runs, so that a Routing is comparable.
type OddLines string

// oddRun is count lines of one kind from first to last. A run with fewer lines than its length has others in between.
type oddRun struct {
	first, last, count int64
	kind               OddKind
}

// maxOddRuns limits what a file's row holds. Beyond it, runs are joined: only how many of a joined run lie before a
// line inside it is then a guess.
const maxOddRuns = 1024

// oddSums are sums over the files on disk.
type oddSums struct{ withheld, malformed, oversize int64 }

// add adds (sign 1) or takes away (-1) what a file on disk contributes.
func (s *oddSums) add(r *fileRow, sign int64) {
	if r.tracked.Gone != 0 {
		return
	}
	n := r.routing.Odd.Count()
	s.withheld += sign * r.routing.Withheld
	s.malformed += sign * n[OddMalformed]
	s.oversize += sign * n[OddOversize]
}

// OddList collects odd lines.
type OddList struct{ runs []oddRun }

// Add adds a line that lies behind all others.
func (l *OddList) Add(line int64, kind OddKind) { l.add(oddRun{line, line, 1, kind}) }

func (l *OddList) add(r oddRun) {
	n := len(l.runs)
	if n > 0 && l.runs[n-1].kind == r.kind && l.runs[n-1].last+1 == r.first {
		l.runs[n-1].last, l.runs[n-1].count = r.last, l.runs[n-1].count+r.count
		return
	}
	for i := n - 1; n >= maxOddRuns && i >= n-int(oddKinds); i-- {
		if last := &l.runs[i]; last.kind == r.kind {
			last.last, last.count = r.last, last.count+r.count
			return
		}
	}
	l.runs = append(l.runs, r)
}

// Len returns the number of runs.
func (l *OddList) Len() int { return len(l.runs) }

// Clear removes all lines.
func (l *OddList) Clear() { l.runs = l.runs[:0] }

// Plus returns the odd lines with further ones, which lie behind them.
func (o OddLines) Plus(l *OddList) OddLines {
	if l.Len() == 0 {
		return o
	}
	var all OddList
	for r := range o.runs {
		all.add(r)
	}
	for _, r := range l.runs {
		all.add(r)
	}
	return all.pack()
}

// Before returns the odd lines before a line.
func (o OddLines) Before(line int64) OddLines {
	var left OddList
	for r := range o.runs {
		if r.last >= line {
			span, keep := r.last-r.first+1, max(0, line-r.first)
			r.last, r.count = line-1, r.count*keep/span
		}
		if r.count > 0 {
			left.add(r)
		}
	}
	return left.pack()
}

// Count returns how many lines there are of each kind.
func (o OddLines) Count() (n [oddKinds]int64) {
	for r := range o.runs {
		n[r.kind] += r.count
	}
	return n
}

// Total returns the number of odd lines.
func (o OddLines) Total() (n int64) {
	for r := range o.runs {
		n += r.count
	}
	return n
}

func (l *OddList) pack() OddLines {
	var b []byte
	at := int64(0)
	for _, r := range l.runs {
		b = append(b, byte(r.kind))
		b = binary.AppendVarint(b, r.first-at)
		b = binary.AppendVarint(b, r.last-r.first)
		b = binary.AppendVarint(b, r.count)
		at = r.first
	}
	return OddLines(b)
}

// runs yields the runs up to the first that is damaged.
func (o OddLines) runs(yield func(oddRun) bool) {
	b, at := []byte(o), int64(0)
	for len(b) > 0 {
		r := oddRun{kind: OddKind(b[0])}
		b = b[1:]
		for _, to := range []*int64{&r.first, &r.last, &r.count} {
			v, n := binary.Varint(b)
			if n <= 0 || r.kind >= oddKinds {
				return
			}
			*to, b = v, b[n:]
		}
		r.first += at
		r.last += r.first
		if at = r.first; !yield(r) {
			return
		}
	}
}
