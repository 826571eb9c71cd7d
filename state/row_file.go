package state

import (
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
	return kv.SealRow(fileRowVersion, fileKey(r.tracked.File.ID), 512, r.layout)
}

// decodeFileRow reads a row. interned may be nil. The caller sets routing.Dest, which the row holds as a number.
func decodeFileRow(id tail.FileID, v []byte, interned map[string]string) (fileRow, error) {
	var r fileRow
	r.tracked.File.ID, r.routing.Stream.ID = id, uint64(id)
	err := kv.ReadRow("file row", fileRowVersion, fileKey(id), v, func(c *kv.Codec) {
		c.Intern(interned)
		r.layout(c)
	})
	if err != nil {
		return fileRow{}, err
	}
	return r, nil
}

func (r *fileRow) layout(c *kv.Codec) {
	t, f := &r.tracked, &r.routing
	c.Byte((*byte)(&t.File.Kind))
	c.String(&t.File.Path)
	c.Shared(&t.File.Root)
	c.String(&t.File.Name)
	kv.Number(c, &t.File.Copy)
	layoutStat(c, &t.File.Stat)
	layoutCursor(c, &t.Cursor)
	kv.Number(c, &t.Provisional.Length)
	c.Fixed(&t.Provisional.Hash)
	layoutStat(c, &t.Verified)
	kv.Number(c, &t.Gone)
	kv.Number(c, &t.Missed)
	layoutStream(c, &f.Stream)
	kv.Number(c, &r.dest)
	kv.Number(c, &f.RewoundTo, &f.Withheld, &f.Excluded, &f.SentBefore)
	c.Flags(&f.Decided, &f.Plain, &f.Watched, &f.Compacted)
	kv.Number(c, &f.WatchedFrom)
	c.Shared(&f.Stream.Epoch)
	c.String((*string)(&f.Odd))
	c.Shared(&f.ParentCwd)
}

func layoutStat(c *kv.Codec, s *tail.Stat) {
	c.Fixed(&s.Device, &s.Inode)
	kv.Number(c, &s.Size, &s.ModTime, &s.ChangeTime)
}

func layoutCursor(c *kv.Codec, at *tail.Cursor) {
	kv.Number(c, &at.Offset, &at.Line)
	kv.Number(c, &at.Generation)
	c.Fixed(&at.Anchor)
	kv.Number(c, &at.Mark)
	c.Fixed(&at.Segment)
}

func layoutStream(c *kv.Codec, s *outbox.Stream) {
	c.String(&s.SessionID)
	c.Shared(&s.ProjectHash)
	c.String(&s.Path)
	c.Shared(&s.Cwd, &s.Project, &s.Parent, &s.Repository)
	kv.Number(c, &s.MaxEntries)
	c.Flags(&s.Extended)
}
