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
