package state

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

// eachMark calls fn for the marks of a file from an offset on.
func eachMark(marks *kv.Bucket, id tail.FileID, from int64, fn func(tail.Mark)) error {
	prefix := fileKey(id)
	c := marks.Cursor()
	for k, v := c.Seek(markKey(id, from)); bytes.HasPrefix(k, prefix); k, v = c.Next() {
		if len(k) != 16 || len(v) != 16 {
			return fmt.Errorf("%w: mark of %d and %d bytes", ErrCorrupt, len(k), len(v))
		}
		fn(tail.Mark{
			Offset: int64(binary.BigEndian.Uint64(k[8:])),
			Line:   int64(binary.BigEndian.Uint64(v)),
			Hash:   binary.BigEndian.Uint64(v[8:]),
		})
	}
	return nil
}

// moveMarks removes the marks that a rewind made void, and adds the new ones. It shares the transaction of the cursor:
// a mark beyond the cursor would later prove a prefix that was never queued.
func (t *Tx) moveMarks(s *Step) error {
	id := s.Tracked.File.ID
	if s.From != s.Prev {
		if err := t.cutMarks(id, s.From.Offset); err != nil {
			return err
		}
	}
	return t.putMarks(id, s.Marks)
}

func (t *Tx) putMarks(id tail.FileID, marks []tail.Mark) error {
	for _, m := range marks {
		v := binary.BigEndian.AppendUint64(make([]byte, 0, 16), uint64(m.Line))
		v = binary.BigEndian.AppendUint64(v, m.Hash)
		if err := t.Put("put marks", t.marks, markKey(id, m.Offset), v); err != nil {
			return err
		}
	}
	return nil
}

// cutMarks removes the marks of a file beyond an offset; -1: all.
func (t *Tx) cutMarks(id tail.FileID, beyond int64) error {
	prefix := fileKey(id)
	var keys [][]byte // a cursor skips keys when its bucket is deleted from on the way
	c := t.marks.Cursor()
	for k, _ := c.Seek(markKey(id, beyond+1)); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		keys = append(keys, k)
	}
	for _, k := range keys {
		if err := t.Delete("cut marks", t.marks, k); err != nil {
			return err
		}
	}
	return nil
}
