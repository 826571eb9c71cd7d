package state

import (
	"fmt"
	"time"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

const fileRowVersion = 6

// fileRow is a row of the bucket files.
type fileRow struct {
	tracked tail.Tracked
	routing Routing
	dest    uint32 // of routing.Dest; 0 for ""
}

func (r *fileRow) encode() []byte {
	t, f := &r.tracked, &r.routing
	b := kv.NewSealed(fileRowVersion, 512)
	b = append(b, byte(t.File.Kind))
	b = kv.AppendString(b, t.File.Path)
	b = kv.AppendString(b, t.File.Root)
	b = kv.AppendString(b, t.File.Name)
	b = kv.AppendInt(b, int64(t.File.Copy))
	b = appendStat(b, t.File.Stat)
	b = appendCursor(b, t.Cursor)
	b = kv.AppendInt(b, t.Provisional.Length)
	b = kv.AppendFixed(b, t.Provisional.Hash)
	b = appendStat(b, t.Verified)
	b = kv.AppendInt(b, t.Gone)
	b = kv.AppendInt(b, int64(t.Missed))
	b = appendStream(b, f.Stream)
	b = kv.AppendInt(b, int64(r.dest))
	b = kv.AppendInt(b, f.RewoundTo)
	b = kv.AppendInt(b, f.Withheld)
	b = kv.AppendInt(b, f.Excluded)
	b = kv.AppendInt(b, f.SentBefore)
	b = kv.AppendFlags(b, f.Decided, f.Plain, f.Watched, f.Compacted)
	b = kv.AppendInt(b, f.WatchedFrom)
	b = kv.AppendString(b, f.Stream.Epoch)
	b = kv.AppendString(b, string(f.Odd))
	b = kv.AppendString(b, f.ParentCwd)
	return kv.Seal(fileKey(t.File.ID), b)
}

// decodeFileRow reads a row. interned may be nil. The caller sets routing.Dest, which the row holds as a number.
func decodeFileRow(id tail.FileID, v []byte, interned map[string]string) (fileRow, error) {
	v, err := kv.Unseal(fileKey(id), v, fileRowVersion)
	if err != nil {
		return fileRow{}, fmt.Errorf("read file row: %w", err)
	}
	d := kv.NewDecoder(v, interned)
	var r fileRow
	t, f := &r.tracked, &r.routing
	t.File.ID = id
	t.File.Kind = tail.Kind(d.Byte())
	t.File.Path = d.String()
	t.File.Root = d.Shared()
	t.File.Name = d.String()
	t.File.Copy = int(d.Int())
	t.File.Stat = statFrom(d)
	t.Cursor = cursorFrom(d)
	t.Provisional.Length = d.Int()
	t.Provisional.Hash = d.Fixed()
	t.Verified = statFrom(d)
	t.Gone = d.Int()
	t.Missed = time.Duration(d.Int())
	f.Stream = streamFrom(d)
	f.Stream.ID = uint64(id)
	r.dest = uint32(d.Int())
	f.RewoundTo = d.Int()
	f.Withheld = d.Int()
	f.Excluded = d.Int()
	f.SentBefore = d.Int()
	flags := d.Byte()
	f.Decided, f.Plain, f.Watched, f.Compacted = flags&1 != 0, flags&2 != 0, flags&4 != 0, flags&8 != 0
	f.WatchedFrom = d.Int()
	f.Stream.Epoch = d.Shared()
	f.Odd = OddLines(d.String())
	f.ParentCwd = d.Shared()
	if err := d.End(); err != nil {
		return fileRow{}, fmt.Errorf("read file row: %w", err)
	}
	return r, nil
}

func appendStat(b []byte, s tail.Stat) []byte {
	b = kv.AppendFixed(b, s.Device)
	b = kv.AppendFixed(b, s.Inode)
	b = kv.AppendInt(b, s.Size)
	b = kv.AppendInt(b, s.ModTime)
	return kv.AppendInt(b, s.ChangeTime)
}

func statFrom(d *kv.Decoder) tail.Stat {
	return tail.Stat{Device: d.Fixed(), Inode: d.Fixed(), Size: d.Int(), ModTime: d.Int(), ChangeTime: d.Int()}
}

func appendCursor(b []byte, c tail.Cursor) []byte {
	b = kv.AppendInt(b, c.Offset)
	b = kv.AppendInt(b, c.Line)
	b = kv.AppendInt(b, int64(c.Generation))
	b = kv.AppendFixed(b, c.Anchor)
	b = kv.AppendInt(b, c.Mark)
	return kv.AppendFixed(b, c.Segment)
}

func cursorFrom(d *kv.Decoder) tail.Cursor {
	return tail.Cursor{
		Offset: d.Int(), Line: d.Int(), Generation: uint32(d.Int()), Anchor: d.Fixed(), Mark: d.Int(), Segment: d.Fixed(),
	}
}

func appendStream(b []byte, s outbox.Stream) []byte {
	b = kv.AppendString(b, s.SessionID)
	b = kv.AppendString(b, s.ProjectHash)
	b = kv.AppendString(b, s.Path)
	b = kv.AppendString(b, s.Cwd)
	b = kv.AppendString(b, s.Project)
	b = kv.AppendString(b, s.Parent)
	b = kv.AppendString(b, s.Repository)
	b = kv.AppendInt(b, int64(s.MaxEntries))
	return kv.AppendFlags(b, s.Extended)
}

func streamFrom(d *kv.Decoder) outbox.Stream {
	return outbox.Stream{
		SessionID: d.String(), ProjectHash: d.Shared(), Path: d.String(),
		Cwd: d.Shared(), Project: d.Shared(), Parent: d.Shared(), Repository: d.Shared(),
		MaxEntries: int(d.Int()), Extended: d.Byte()&1 != 0,
	}
}
