package state

import (
	"fmt"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/tail"
)

// fileRowVersion 2 added what was watched.
const fileRowVersion = 2

// fileRow is a row of the bucket files.
type fileRow struct {
	tracked tail.Tracked
	facts   Facts
	dest    uint32 // of facts.Dest; 0 for ""
}

func (r *fileRow) encode() []byte {
	t, f := &r.tracked, &r.facts
	b := newSealed(fileRowVersion, 512)
	b = append(b, byte(t.File.Kind))
	b = appendString(b, t.File.Path)
	b = appendString(b, t.File.Root)
	b = appendString(b, t.File.Name)
	b = appendInt(b, int64(t.File.Copy))
	b = appendStat(b, t.File.Stat)
	b = appendCursor(b, t.Cursor)
	b = appendInt(b, t.Provisional.Length)
	b = appendFixed(b, t.Provisional.Hash)
	b = appendStat(b, t.Verified)
	b = appendInt(b, t.Gone)
	b = appendInt(b, t.Listings)
	b = appendStream(b, f.Stream)
	b = appendInt(b, int64(r.dest))
	b = appendInt(b, f.RewoundTo)
	b = appendInt(b, f.Withheld)
	b = appendInt(b, f.Excluded)
	b = appendInt(b, f.SentBefore)
	b = appendInt(b, f.SentBefore)
	b = appendFlags(b, f.Decided, f.Plain, f.Watched, f.Compacted)
	b = appendInt(b, f.WatchedFrom)
	return seal(fileKey(t.File.ID), b)
}

// decodeFileRow reads a row; interned may be nil. The caller fills facts.Dest from dest.
func decodeFileRow(id tail.FileID, v []byte, interned map[string]string) (fileRow, error) {
	version := byte(fileRowVersion)
	if len(v) > 0 && v[0] == 1 {
		version = 1
	}
	v, err := unseal(fileKey(id), v, version)
	if err != nil {
		return fileRow{}, fmt.Errorf("read file row: %w", err)
	}
	d := decoder{b: v, interned: interned}
	var r fileRow
	t, f := &r.tracked, &r.facts
	t.File.ID = id
	t.File.Kind = tail.Kind(d.byte())
	t.File.Path = d.string()
	t.File.Root = d.shared()
	t.File.Name = d.string()
	t.File.Copy = int(d.int())
	t.File.Stat = d.stat()
	t.Cursor = d.cursor()
	t.Provisional.Length = d.int()
	t.Provisional.Hash = d.fixed()
	t.Verified = d.stat()
	t.Gone = d.int()
	t.Listings = d.int()
	f.Stream = d.stream()
	f.Stream.ID = uint64(id)
	r.dest = uint32(d.int())
	f.RewoundTo = d.int()
	f.Withheld = d.int()
	f.Excluded = d.int()
	f.SentBefore = d.int()
	f.SentBefore = d.int()
	flags := d.byte()
	f.Decided, f.Plain, f.Watched, f.Compacted = flags&1 != 0, flags&2 != 0, flags&4 != 0, flags&8 != 0
	if version > 1 {
		f.WatchedFrom = d.int()
	}
	if err := d.end(); err != nil {
		return fileRow{}, fmt.Errorf("read file row: %w", err)
	}
	return r, nil
}

func appendStat(b []byte, s tail.Stat) []byte {
	b = appendFixed(b, s.Device)
	b = appendFixed(b, s.Inode)
	b = appendInt(b, s.Size)
	b = appendInt(b, s.ModTime)
	return appendInt(b, s.ChangeTime)
}

func (d *decoder) stat() tail.Stat {
	return tail.Stat{Device: d.fixed(), Inode: d.fixed(), Size: d.int(), ModTime: d.int(), ChangeTime: d.int()}
}

func appendCursor(b []byte, c tail.Cursor) []byte {
	b = appendInt(b, c.Offset)
	b = appendInt(b, c.Line)
	b = appendInt(b, int64(c.Generation))
	b = appendFixed(b, c.Anchor)
	b = appendInt(b, c.Mark)
	return appendFixed(b, c.Segment)
}

func (d *decoder) cursor() tail.Cursor {
	return tail.Cursor{Offset: d.int(), Line: d.int(), Generation: uint32(d.int()), Anchor: d.fixed(), Mark: d.int(), Segment: d.fixed()}
}

func appendStream(b []byte, s outbox.Stream) []byte {
	b = appendString(b, s.SessionID)
	b = appendString(b, s.ProjectHash)
	b = appendString(b, s.Path)
	b = appendString(b, s.Cwd)
	b = appendString(b, s.Project)
	b = appendString(b, s.Parent)
	b = appendInt(b, int64(s.MaxEntries))
	return appendFlags(b, s.Extended)
}

func (d *decoder) stream() outbox.Stream {
	return outbox.Stream{
		SessionID: d.string(), ProjectHash: d.shared(), Path: d.string(), Cwd: d.shared(), Project: d.shared(), Parent: d.shared(),
		MaxEntries: int(d.int()), Extended: d.byte()&1 != 0,
	}
}
