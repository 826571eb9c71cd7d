package projection

import (
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

// Rows of sessions:
//
//	projections  u64 file → sealed {at, place, cleared, effects}  sessionRow
//	folds        u64 file → sealed {fold, log, marks}             foldRow
const (
	sessionVersion = 1
	foldVersion    = 1
)

// Sessions is what is kept of the meaning of transcripts.
type Sessions struct{ db *DB }

// sessionRow is a row of the bucket projections. It is small and apart from the fold, so that all of them can be read.
type sessionRow struct {
	at      int64 // Unix seconds when it was written
	place   Place
	cleared int64
	effects int64
}

func (r *sessionRow) layout(c *kv.Codec) {
	kv.Number(c, &r.at, &r.place.Offset, &r.place.Line)
	kv.Number(c, &r.place.Generation)
	kv.Number(c, &r.cleared, &r.effects)
}

func decodeSession(key, v []byte) (r sessionRow, err error) {
	err = kv.ReadRow("session row", sessionVersion, key, v, r.layout)
	return r, err
}

// foldRow is a row of the bucket folds: its parts are compressed, or empty when there is nothing to compress.
type foldRow struct{ fold, log, marks []byte }

// layout reads parts that point into the value.
func (b *foldRow) layout(c *kv.Codec) { c.Bytes(&b.fold, &b.log, &b.marks) }

// pack compresses a projection. It runs outside the transaction, which other callers wait for.
func (db *DB) pack(u *Projection) (foldRow, error) {
	z, ok := db.packers.Get().(*flate.Writer)
	if !ok {
		var err error
		if z, err = flate.NewWriter(nil, flate.BestSpeed); err != nil {
			return foldRow{}, fmt.Errorf("compress session: %w", err)
		}
	}
	defer db.packers.Put(z)
	var b foldRow
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
			return foldRow{}, fmt.Errorf("compress session: %w", err)
		}
		if err := z.Close(); err != nil {
			return foldRow{}, fmt.Errorf("compress session: %w", err)
		}
		*part.to = out.Bytes()
	}
	return b, nil
}

// unpack is the inverse of pack.
func (b *foldRow) unpack(u *Projection) (err error) {
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

// Projection returns what is kept of a file; false: nothing. Without a fold only the position is known.
func (s *Sessions) Projection(ctx context.Context, id tail.FileID) (u Projection, found bool, err error) {
	var b foldRow
	err = s.db.State.View(ctx, func(tx *kv.Snapshot) error {
		k := fileKey(id)
		v := tx.Bucket(state.BucketProjections).Get(k)
		if v == nil {
			return nil
		}
		r, err := decodeSession(k, v)
		if err != nil {
			return err
		}
		found = true
		u.Place, u.Cleared, u.EffectsThrough = r.place, r.cleared, r.effects
		if v = tx.Bucket(state.BucketFolds).Get(k); v == nil {
			return nil
		}
		err = kv.ReadRow("fold", foldVersion, k, v, b.layout)
		b = foldRow{bytes.Clone(b.fold), bytes.Clone(b.log), bytes.Clone(b.marks)}
		return err
	})
	if err == nil {
		err = b.unpack(&u)
	}
	if err != nil {
		return Projection{}, false, fmt.Errorf("read projection: %w", err)
	}
	return u, found, nil
}

// Lagging returns the files of which more was read than folded, if that matters: those with watched lines, and those
// with a compaction. A daemon that starts folds them to their ends: a crash between the commit of lines and that of
// their projection loses nothing.
func (s *Sessions) Lagging(ctx context.Context) (ids []tail.FileID, err error) {
	err = s.db.State.View(ctx, func(tx *kv.Snapshot) error {
		rows := tx.Bucket(state.BucketProjections)
		return s.db.State.EachFile(tx, func(f tail.Tracked, r state.Routing) error {
			if !r.Watched && !r.Compacted {
				return nil
			}
			var place Place
			k := fileKey(f.File.ID)
			if v := rows.Get(k); v != nil {
				row, err := decodeSession(k, v)
				if err != nil {
					return err
				}
				place = row.place
			}
			if place != PlaceOf(f.Cursor) {
				ids = append(ids, f.File.ID)
			}
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("find sessions to catch up with: %w", err)
	}
	return ids, nil
}

// putProjection stores how far a file is folded. tail.ErrStale: the stored position is not Prev. The comparison makes a
// derivation safe to repeat, as that of the cursor does for state.Step.
func (t *tx) putProjection(d *Derivation, b *foldRow) error {
	k := fileKey(d.File)
	var old sessionRow
	if v := t.projections.Get(k); v != nil {
		var err error
		if old, err = decodeSession(k, v); err != nil {
			return err
		}
	}
	if old.place != d.Prev {
		return tail.ErrStale
	}
	p := d.Projection
	row := sessionRow{at: t.Now, place: p.Place, cleared: p.Cleared, effects: p.EffectsThrough}
	if err := t.Put("put session", t.projections, k, kv.SealRow(sessionVersion, k, 32, row.layout)); err != nil {
		return err
	}
	return t.putFold(k, b)
}

func (t *tx) putFold(k []byte, b *foldRow) error {
	v := kv.SealRow(foldVersion, k, 16+len(b.fold)+len(b.log)+len(b.marks), b.layout)
	t.delta.folds += int64(len(v) - len(t.folds.Get(k)))
	return t.Put("put messages", t.folds, k, v)
}

// dropFold removes a file's fold, if it has one.
func (t *tx) dropFold(k []byte) error {
	v := t.folds.Get(k)
	if v == nil {
		return nil
	}
	t.delta.folds -= int64(len(v))
	return t.Delete("drop messages", t.folds, k)
}

func (t *tx) dropProjection(id tail.FileID) error {
	k := fileKey(id)
	if err := t.dropFold(k); err != nil || t.projections.Get(k) == nil {
		return err
	}
	return t.Delete("drop session", t.projections, k)
}

// boundFolds removes the folds that were written the longest ago when there are too many bytes of them, but none of the
// derivations of the call. It removes an eighth more than needed, or every commit would have to. Their positions stay:
// effects that happened must not happen again when the transcript is folded from its beginning.
func (t *tx) boundFolds(fresh []Derivation) error {
	size := func() int64 { return t.delta.memory.foldBytes() + t.delta.folds }
	if size() <= t.delta.memory.db.foldCap {
		return nil
	}
	type aged struct {
		key []byte
		at  int64
	}
	var rows []aged
	err := t.folds.ForEach(func(k, _ []byte) error {
		if slices.ContainsFunc(fresh, func(d Derivation) bool { return string(fileKey(d.File)) == string(k) }) {
			return nil
		}
		var at int64
		if v := t.projections.Get(k); v != nil {
			r, err := decodeSession(k, v)
			if err != nil {
				return err
			}
			at = r.at
		}
		rows = append(rows, aged{bytes.Clone(k), at})
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(rows, func(a, b aged) int { return cmp.Compare(a.at, b.at) })
	for _, old := range rows {
		if size() <= t.delta.memory.db.foldCap-t.delta.memory.db.foldCap/8 {
			break
		}
		if err := t.dropFold(old.key); err != nil {
			return err
		}
	}
	return nil
}

// readSessions checks the rows of projections, and counts the bytes of the folds, which are checked when they are read.
func (m *memory) readSessions(tx *kv.Snapshot) error {
	err := tx.Bucket(state.BucketProjections).ForEach(func(k, v []byte) error {
		_, err := decodeSession(k, v)
		return err
	})
	if err != nil {
		return err
	}
	return tx.Bucket(state.BucketFolds).ForEach(func(_, v []byte) error {
		m.folds += int64(len(v))
		return nil
	})
}
