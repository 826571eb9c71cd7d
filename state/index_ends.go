package state

import "bytes"

// ends are the first and the last row of a stream; zero: there is none.
type ends struct {
	first, last uint64
	firstAt     int64
}

// findEnds looks up what are now the first and the last rows of the streams that rows were removed from. It runs once
// at the end of a transaction, however many rows of a stream it removed.
func (t *Tx) findEnds() error {
	for k := range t.delta.ends {
		prefix := streamPrefix(k.dest, k.stream)
		c := t.outbox.Cursor()
		key, v := c.Seek(prefix)
		if !bytes.HasPrefix(key, prefix) {
			continue
		}
		first, err := readRowMeta(key, v)
		if err != nil {
			return err
		}
		// Going back is not safe: bbolt's Prev stops at pages that deletions of this transaction emptied. It is not
		// needed either, because rows mostly leave from the front.
		last := t.lastSeq(k)
		if t.outbox.Get(rowKey(k.dest, k.stream, last)) == nil {
			for ; bytes.HasPrefix(key, prefix); key, _ = c.Next() {
				_, _, last, _ = splitRowKey(key)
			}
		}
		t.delta.ends[k] = ends{first: first.seq, last: last, firstAt: first.at}
	}
	return nil
}

// lastSeq returns the highest seq that a stream has had since its rows were last all gone.
func (t *Tx) lastSeq(k streamKey) uint64 {
	for i := len(t.delta.added) - 1; i >= 0; i-- {
		if m := &t.delta.added[i]; m.dest == k.dest && m.stream == k.stream {
			return m.seq
		}
	}
	return t.known.lastSeq(k)
}
