package state

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/ccship/ccship/state/kv"

	"github.com/ccship/ccship/tail"
)

// Past is a generation that ended: what its last cursor knew when a rewind took bytes out of the file. With the prefix
// hashes that were cut then, what a server has of it can be proven.
type Past struct {
	File       tail.FileID
	Dest       string
	Generation uint32
	Next       uint32      // the generation that took its place
	RewoundTo  int64       // its first line
	Cursor     tail.Cursor // where it ended
	CutOffset  int64       // what is before it is in the next generation too
	CutLine    int64
	LeftOut    bool        // some of its lines may never have been sent: excluded, or sent before ccship came
	Unmarked   bool        // there were too many marks to keep
	Marks      []tail.Mark // beyond CutOffset
}

// What is kept of one file's pasts at most.
const (
	mostPasts     = 500
	mostPastMarks = 4096 // some 256 MiB of transcript
)

const pastVersion = 1

func pastKey(id tail.FileID, generation uint32) []byte {
	return binary.BigEndian.AppendUint32(fileKey(id), generation)
}

// putPast keeps what a step's rewind ends; the marks it cuts are still there.
func (t *txn) putPast(s *Step, old *fileRow) error {
	if s.From == s.Prev || s.Prev.Line == 0 {
		return nil
	}
	id := s.Tracked.File.ID
	p := Past{
		File: id, Generation: s.Prev.Generation, Next: s.From.Generation, RewoundTo: old.facts.RewoundTo, Cursor: s.Prev,
		CutOffset: s.From.Offset, CutLine: s.From.Line, LeftOut: old.facts.Excluded > 0 || old.facts.SentBefore > 0,
	}
	err := eachMark(t.prefixes, id, s.From.Offset+1, func(m tail.Mark) { p.Marks = append(p.Marks, m) })
	if err != nil {
		return err
	}
	if len(p.Marks) > mostPastMarks {
		p.Marks, p.Unmarked = nil, true
	}
	generations := t.Bucket(bucketGenerations)
	key := pastKey(id, p.Generation)
	if err := t.Put("put past", generations, key, p.encode(key, old.dest)); err != nil {
		return err
	}
	return t.trimPasts(id, mostPasts)
}

// trimPasts removes the oldest pasts of a file until so many are left.
func (t *txn) trimPasts(id tail.FileID, left int) error {
	generations := t.Bucket(bucketGenerations)
	keys := kv.Keys(generations, fileKey(id))
	for _, k := range keys[:max(0, len(keys)-left)] {
		if err := t.Delete("delete past", generations, k); err != nil {
			return err
		}
	}
	return nil
}

func (p *Past) encode(key []byte, dest uint32) []byte {
	b := kv.NewSealed(pastVersion, 128+24*len(p.Marks))
	b = kv.AppendInt(b, int64(dest))
	b = kv.AppendInt(b, int64(p.Next))
	b = kv.AppendInt(b, p.RewoundTo)
	b = appendCursor(b, p.Cursor)
	b = kv.AppendInt(b, p.CutOffset)
	b = kv.AppendInt(b, p.CutLine)
	b = kv.AppendFlags(b, p.LeftOut, p.Unmarked)
	b = kv.AppendInt(b, int64(len(p.Marks)))
	for _, m := range p.Marks {
		b = kv.AppendInt(b, m.Offset)
		b = kv.AppendInt(b, m.Line)
		b = kv.AppendFixed(b, m.Hash)
	}
	return kv.Seal(key, b)
}

func decodePast(key, v []byte) (p Past, dest uint32, err error) {
	if len(key) != 12 {
		return p, 0, fmt.Errorf("%w: generation key of %d bytes", ErrCorrupt, len(key))
	}
	if v, err = kv.Unseal(key, v, pastVersion); err != nil {
		return p, 0, fmt.Errorf("read past: %w", err)
	}
	p.File, p.Generation = tail.FileID(binary.BigEndian.Uint64(key)), binary.BigEndian.Uint32(key[8:])
	d := kv.NewDecoder(v, nil)
	dest = uint32(d.Int())
	p.Next = uint32(d.Int())
	p.RewoundTo = d.Int()
	p.Cursor = cursorFrom(d)
	p.CutOffset = d.Int()
	p.CutLine = d.Int()
	flags := d.Byte()
	p.LeftOut, p.Unmarked = flags&1 != 0, flags&2 != 0
	for n := d.Int(); n > 0 && d.OK(); n-- {
		p.Marks = append(p.Marks, tail.Mark{Offset: d.Int(), Line: d.Int(), Hash: d.Fixed()})
	}
	return p, dest, d.End()
}

// History is everything remembered of how a file was read, as of one moment.
type History struct {
	Tracked tail.Tracked
	Marks   []tail.Mark // of the generation that goes on
	Pasts   []Past      // the newest first
}

// History answers a file's. ErrUnknownFile: nothing is remembered of it.
func (db *DB) History(ctx context.Context, id tail.FileID) (History, error) {
	var h History
	err := db.view(ctx, func(tx *kv.Snapshot) error {
		v := tx.Bucket(bucketFiles).Get(fileKey(id))
		if v == nil {
			return ErrUnknownFile
		}
		r, err := decodeFileRow(id, v, nil)
		if err != nil {
			return err
		}
		h.Tracked = r.tracked
		if err := eachMark(tx.Bucket(bucketMarks), id, 0, func(m tail.Mark) { h.Marks = append(h.Marks, m) }); err != nil {
			return err
		}
		prefix := fileKey(id)
		c := tx.Bucket(bucketGenerations).Cursor()
		for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
			p, dest, err := decodePast(k, v)
			if err != nil {
				return err
			}
			p.Dest = db.index.destURL(dest)
			h.Pasts = append(h.Pasts, p)
		}
		return nil
	})
	if err != nil {
		return History{}, fmt.Errorf("read history of file: %w", err)
	}
	slices.Reverse(h.Pasts)
	return h, nil
}

// MarksOf are the marks that a past's generation had when it ended; ok is false when not all of them are known any
// more, for a past between it and now is missing.
func (h *History) MarksOf(generation uint32) (marks []tail.Mark, ok bool) {
	marks, above := h.Marks, h.Tracked.Cursor.Generation
	for _, p := range h.Pasts {
		if above == generation {
			break
		}
		if p.Next != above || p.Unmarked {
			return nil, false
		}
		keep, _ := slices.BinarySearchFunc(marks, p.CutOffset+1, func(m tail.Mark, at int64) int { return cmp.Compare(m.Offset, at) })
		marks, above = append(slices.Clone(marks[:keep]), p.Marks...), p.Generation
	}
	return marks, above == generation
}
