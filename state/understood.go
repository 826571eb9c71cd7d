package state

import (
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/ccship/ccship/state/kv"

	"github.com/ccship/ccship/tail"
)

const (
	understoodVersion = 1
	blobsVersion      = 1
	// understoodCap bounds the bytes of blobs as they are stored. It is no part of Options.Cap, which is about what must
	// not be lost: this can be made again from the transcripts.
	understoodCap = 64 << 20
)

// understoodRow is a row of the bucket sessions: small, so that all of them can be looked through.
type understoodRow struct {
	at      int64 // Unix seconds when it was written
	place   Place
	cleared int64
	had     int64
}

func (r *understoodRow) encode(key []byte) []byte {
	b := kv.NewSealed(understoodVersion, 32)
	b = kv.AppendInt(b, r.at)
	b = kv.AppendInt(b, r.place.Offset)
	b = kv.AppendInt(b, r.place.Line)
	b = kv.AppendInt(b, int64(r.place.Generation))
	b = kv.AppendInt(b, r.cleared)
	b = kv.AppendInt(b, r.had)
	return kv.Seal(key, b)
}

func decodeUnderstood(key, v []byte) (understoodRow, error) {
	v, err := kv.Unseal(key, v, understoodVersion)
	if err != nil {
		return understoodRow{}, fmt.Errorf("read session row: %w", err)
	}
	d := kv.NewDecoder(v, nil)
	r := understoodRow{at: d.Int(), place: Place{Offset: d.Int(), Line: d.Int(), Generation: uint32(d.Int())}, cleared: d.Int(), had: d.Int()}
	if err := d.End(); err != nil {
		return understoodRow{}, fmt.Errorf("read session row: %w", err)
	}
	return r, nil
}

// blobs are the parts of a row of the bucket messages, each compressed or, if there is nothing to compress, empty.
type blobs struct{ fold, log, marks []byte }

func (b *blobs) encode(key []byte) []byte {
	v := kv.NewSealed(blobsVersion, 16+len(b.fold)+len(b.log)+len(b.marks))
	v = kv.AppendBytes(v, b.fold)
	v = kv.AppendBytes(v, b.log)
	v = kv.AppendBytes(v, b.marks)
	return kv.Seal(key, v)
}

// decodeBlobs reads a row; the blobs point into it.
func decodeBlobs(key, v []byte) (blobs, error) {
	v, err := kv.Unseal(key, v, blobsVersion)
	if err != nil {
		return blobs{}, fmt.Errorf("read messages row: %w", err)
	}
	d := kv.NewDecoder(v, nil)
	b := blobs{fold: d.Bytes(), log: d.Bytes(), marks: d.Bytes()}
	if err := d.End(); err != nil {
		return blobs{}, fmt.Errorf("read messages row: %w", err)
	}
	return b, nil
}

// pack compresses what is kept.
func (db *DB) pack(u *Understood) (blobs, error) {
	z, ok := db.packers.Get().(*flate.Writer)
	if !ok {
		var err error
		if z, err = flate.NewWriter(nil, flate.BestSpeed); err != nil {
			return blobs{}, fmt.Errorf("compress session: %w", err)
		}
	}
	defer db.packers.Put(z)
	var b blobs
	for _, part := range []struct {
		to   *[]byte
		from []byte
	}{{&b.fold, u.Fold}, {&b.log, u.Log}, {&b.marks, u.Marks}} {
		if len(part.from) == 0 {
			continue
		}
		var out bytes.Buffer
		z.Reset(&out)
		if _, err := z.Write(part.from); err != nil {
			return blobs{}, fmt.Errorf("compress session: %w", err)
		}
		if err := z.Close(); err != nil {
			return blobs{}, fmt.Errorf("compress session: %w", err)
		}
		*part.to = out.Bytes()
	}
	return b, nil
}

// unpack is the inverse of pack.
func (b *blobs) unpack(u *Understood) (err error) {
	for _, part := range []struct {
		to   *[]byte
		from []byte
	}{{&u.Fold, b.fold}, {&u.Log, b.log}, {&u.Marks, b.marks}} {
		if len(part.from) == 0 {
			continue
		}
		if *part.to, err = io.ReadAll(flate.NewReader(bytes.NewReader(part.from))); err != nil {
			return fmt.Errorf("decompress session: %w", err)
		}
	}
	return nil
}

// Understood answers what is kept of what a file means; false: nothing. Without blobs only the place is known.
func (db *DB) Understood(ctx context.Context, id tail.FileID) (u Understood, found bool, err error) {
	var b blobs
	err = db.view(ctx, func(tx *kv.Snapshot) error {
		k := fileKey(id)
		v := tx.Bucket(bucketProjections).Get(k)
		if v == nil {
			return nil
		}
		r, err := decodeUnderstood(k, v)
		if err != nil {
			return err
		}
		found = true
		u.Place, u.Cleared, u.Had = r.place, r.cleared, r.had
		if v = tx.Bucket(bucketFolds).Get(k); v == nil {
			return nil
		}
		b, err = decodeBlobs(k, v)
		b = blobs{clone(b.fold), clone(b.log), clone(b.marks)}
		return err
	})
	if err == nil {
		err = b.unpack(&u)
	}
	if err != nil {
		return Understood{}, false, fmt.Errorf("read what a session means: %w", err)
	}
	return u, found, nil
}

// Behind answers the files of which more was read than is understood, if that matters: those with watched lines, and
// those with a compaction.
func (db *DB) Behind(ctx context.Context) (ids []tail.FileID, err error) {
	interned := map[string]string{}
	err = db.view(ctx, func(tx *kv.Snapshot) error {
		sessions := tx.Bucket(bucketProjections)
		return tx.Bucket(bucketFiles).ForEach(func(k, v []byte) error {
			id, err := splitFileKey(k)
			if err != nil {
				return err
			}
			f, err := decodeFileRow(id, v, interned)
			if err != nil || !f.facts.Watched && !f.facts.Compacted {
				return err
			}
			var place Place
			if row := sessions.Get(k); row != nil {
				r, err := decodeUnderstood(k, row)
				if err != nil {
					return err
				}
				place = r.place
			}
			if place != PlaceOf(f.tracked.Cursor) {
				ids = append(ids, id)
			}
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("find sessions to catch up with: %w", err)
	}
	return ids, nil
}

// putUnderstood stores how far a file is understood. tail.ErrStale: the place was not where it should be.
func (t *txn) putUnderstood(d *Derivation, b *blobs) error {
	k := fileKey(d.File)
	var old understoodRow
	if v := t.sessions.Get(k); v != nil {
		var err error
		if old, err = decodeUnderstood(k, v); err != nil {
			return err
		}
	}
	if old.place != d.Prev {
		return tail.ErrStale
	}
	row := understoodRow{at: t.Now, place: d.Understood.Place, cleared: d.Understood.Cleared, had: d.Understood.Had}
	if err := t.Put("put session", t.sessions, k, row.encode(k)); err != nil {
		return err
	}
	return t.putBlobs(k, b)
}

func (t *txn) putBlobs(k []byte, b *blobs) error {
	v := b.encode(k)
	t.delta.understood += int64(len(v) - len(t.messages.Get(k)))
	return t.Put("put messages", t.messages, k, v)
}

// dropBlobs takes a file's blobs away, if it has any.
func (t *txn) dropBlobs(k []byte) error {
	v := t.messages.Get(k)
	if v == nil {
		return nil
	}
	t.delta.understood -= int64(len(v))
	return t.Delete("drop messages", t.messages, k)
}

func (t *txn) dropUnderstood(id tail.FileID) error {
	k := fileKey(id)
	if err := t.dropBlobs(k); err != nil || t.sessions.Get(k) == nil {
		return err
	}
	return t.Delete("drop session", t.sessions, k)
}

// boundUnderstood drops the blobs that were written the longest ago when there is too much of them, but none of the
// derivations at hand. Their places stay.
func (t *txn) boundUnderstood(fresh []Derivation) error {
	size := func() int64 { return t.known.understoodBytes() + t.delta.understood }
	if size() <= t.understoodCap {
		return nil
	}
	type aged struct {
		key []byte
		at  int64
	}
	var rows []aged
	err := t.messages.ForEach(func(k, _ []byte) error {
		if slices.ContainsFunc(fresh, func(d Derivation) bool { return string(fileKey(d.File)) == string(k) }) {
			return nil
		}
		var at int64
		if v := t.sessions.Get(k); v != nil {
			r, err := decodeUnderstood(k, v)
			if err != nil {
				return err
			}
			at = r.at
		}
		rows = append(rows, aged{clone(k), at})
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(rows, func(a, b aged) int { return cmp.Compare(a.at, b.at) })
	for _, old := range rows {
		if size() <= t.understoodCap-t.understoodCap/8 {
			break
		}
		if err := t.dropBlobs(old.key); err != nil {
			return err
		}
	}
	return nil
}

// readUnderstood checks the rows of sessions and counts the bytes of the blobs, which are checked when they are read.
func readUnderstood(x *index, tx *kv.Snapshot) error {
	err := tx.Bucket(bucketProjections).ForEach(func(k, v []byte) error {
		_, err := decodeUnderstood(k, v)
		return err
	})
	if err != nil {
		return err
	}
	return tx.Bucket(bucketFolds).ForEach(func(_, v []byte) error {
		x.understood += int64(len(v))
		return nil
	})
}

func (x *index) understoodBytes() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.understood
}
