package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"time"
)

// downloadPage is how many bytes of lines a Download reads ahead, at least one line.
const downloadPage = 1 << 20

// Reserver bounds how many bytes of lines longer than LongHead are held at once: a reader who is slow keeps what is
// written. ErrBusy when a user waits for too long. The caller calls release once.
type Reserver interface {
	ReserveLong(ctx context.Context, user, bytes int64) (release func(), err error)
}

// ReserveLong reserves bytes at a store that limits them; a store that does not has space for all.
func ReserveLong(ctx context.Context, st Pinner, user, bytes int64) (release func(), err error) {
	if r, ok := st.(Reserver); ok && user != 0 {
		return r.ReserveLong(ctx, user, bytes)
	}
	return func() {}, nil
}

// ErrShrunk means that lines were removed from a session while it was read.
var ErrShrunk = errors.New("lines of the session were removed while it was read; ask for it again")

// Pinner opens snapshots.
type Pinner interface {
	View(ctx context.Context, scope Scope, ref Ref) (Snapshot, error)
}

// Download is a Snapshot for a reader who may be slow: while Lines yields, the store is not held. It has the epoch and
// the generations that were there when it was opened. What is masked meanwhile is read masked, what is forgotten or no
// longer allowed ends it. For one goroutine.
type Download struct {
	Snapshot // while it is held; what it says of the session stays
	store    Pinner
	scope    Scope
	ref      Ref
	held     bool
	page     []Line
	bytes    bytes.Buffer // of the page
	free     func()       // gives back the bytes of a longer line; nil: none are reserved
}

// OpenDownload opens a stream as View does. The caller closes it.
func OpenDownload(ctx context.Context, st Pinner, scope Scope, ref Ref) (*Download, error) {
	snap, err := st.View(ctx, scope, ref)
	if err != nil {
		return nil, err
	}
	x := snap.Session()
	if ref.Epoch == "" {
		ref.Epoch = x.Epoch
	}
	return &Download{Snapshot: snap, store: st, scope: scope, held: true,
		ref: Ref{Stream: x.ID, Owner: x.Owner, Epoch: ref.Epoch}}, nil
}

// hold returns a snapshot.
func (d *Download) hold(ctx context.Context) (Snapshot, error) {
	if d.held {
		return d.Snapshot, nil
	}
	snap, err := d.store.View(ctx, d.scope, d.ref)
	if err != nil {
		return nil, err
	}
	d.Snapshot, d.held = &kept{snap, d.Snapshot}, true
	return d.Snapshot, nil
}

// kept is a snapshot that says of the session what an earlier one said.
type kept struct {
	Snapshot
	first Snapshot
}

func (k *kept) Session() Session          { return k.first.Session() }
func (k *kept) Epochs() []Epoch           { return k.first.Epochs() }
func (k *kept) Generations() []Generation { return k.first.Generations() }

// release gives the snapshot back.
func (d *Download) release() error {
	if !d.held {
		return nil
	}
	d.held = false
	err := d.Snapshot.Close()
	if k, ok := d.Snapshot.(*kept); ok {
		d.Snapshot = k.first
	}
	return err
}

// Close implements Snapshot.
func (d *Download) Close() error {
	d.leave()
	return d.release()
}

// leave lets go of a longer line, and of its bytes.
func (d *Download) leave() {
	if d.free != nil {
		d.bytes = bytes.Buffer{}
		d.free()
		d.free = nil
	}
}

var errPage = errors.New("the page is full")

// longError says that a line needs so many bytes, which must be reserved.
type longError int64

func (longError) Error() string { return "the line is longer than what may be read" }

// Lines implements Snapshot. ErrShrunk when lines went away meanwhile. yield does not call it again.
func (d *Download) Lines(ctx context.Context, s Span, yield func(Line) error) error {
	left := int64(-1)       // lines to come; -1: all are on the first page
	most := int64(LongHead) // bytes of a line that may be read
	for s.From < s.To {
		var found error
		var more bool
		err := d.with(ctx, func(snap Snapshot) error {
			found = d.read(ctx, snap, s, most)
			if more = errors.Is(found, errPage); !more || left >= 0 {
				return nil
			}
			lines, oversize, err := snap.Count(ctx, s)
			left = lines + oversize
			return err
		})
		if err != nil {
			return err
		}
		if long, is := errors.AsType[longError](found); is { // nothing of the store is held while this waits
			d.leave()
			if d.free, err = ReserveLong(ctx, d.store, d.scope.User, int64(long)); err != nil {
				return err
			}
			most = int64(long)
			continue
		}
		most = LongHead
		for _, l := range d.page {
			if err := yield(l); err != nil {
				return err
			}
		}
		d.leave()
		if !more && found != nil { // what follows is damaged
			return found
		}
		if left >= 0 {
			left -= int64(len(d.page))
		}
		if !more {
			break
		}
		s.From = d.page[len(d.page)-1].Index + 1
	}
	if left > 0 {
		return ErrShrunk
	}
	return nil
}

// read reads a page of lines that have at most so many bytes. errPage says that there may be more, a longError that the
// first is longer.
func (d *Download) read(ctx context.Context, snap Snapshot, s Span, most int64) error {
	d.page = d.page[:0]
	d.bytes.Reset()
	var ends []int
	part := s
	if s.Most == 0 || s.Most > most {
		part.Most = most
	}
	err := snap.Lines(ctx, part, func(l Line) error {
		if len(d.page) > 0 && d.bytes.Len()+len(l.Raw) > downloadPage {
			return errPage
		}
		if l.Cut > 0 && (s.Most == 0 || l.Size() <= s.Most) {
			return longError(l.Size())
		}
		d.bytes.Grow(len(l.Raw)) // of a huge line once, not by doubling
		d.bytes.Write(l.Raw)
		ends = append(ends, d.bytes.Len())
		l.Raw = nil
		d.page = append(d.page, l)
		return nil
	})
	from := 0
	for i, end := range ends {
		d.page[i].Raw = d.bytes.Bytes()[from:end:end]
		from = end
	}
	return err
}

// with calls fn with a snapshot, and gives it back.
func (d *Download) with(ctx context.Context, fn func(Snapshot) error) error {
	snap, err := d.hold(ctx)
	if err != nil {
		return err
	}
	return errors.Join(fn(snap), d.release())
}

// Count implements Snapshot.
func (d *Download) Count(ctx context.Context, s Span) (lines, oversize int64, err error) {
	err = d.with(ctx, func(snap Snapshot) (err error) {
		lines, oversize, err = snap.Count(ctx, s)
		return err
	})
	return lines, oversize, err
}

// Replaced implements Snapshot.
func (d *Download) Replaced(ctx context.Context, s Span, yield func(l Line, at time.Time) error) error {
	return d.with(ctx, func(snap Snapshot) error { return snap.Replaced(ctx, s, yield) })
}

// Retired implements Snapshot.
func (d *Download) Retired(ctx context.Context, s Span, hashes bool, yield func(*RetiredRun) error) error {
	return d.with(ctx, func(snap Snapshot) error { return snap.Retired(ctx, s, hashes, yield) })
}

// Folded implements Snapshot.
func (d *Download) Folded(ctx context.Context) (at Position, state []byte, err error) {
	err = d.with(ctx, func(snap Snapshot) (err error) {
		at, state, err = snap.Folded(ctx)
		return err
	})
	return at, state, err
}

// CopiedFrom implements Snapshot.
func (d *Download) CopiedFrom(ctx context.Context) (id string, err error) {
	err = d.with(ctx, func(snap Snapshot) (err error) {
		id, err = snap.CopiedFrom(ctx)
		return err
	})
	return id, err
}

// Masked implements Snapshot.
func (d *Download) Masked(ctx context.Context) (list []MaskedLine, err error) {
	err = d.with(ctx, func(snap Snapshot) (err error) {
		list, err = snap.Masked(ctx)
		return err
	})
	return list, err
}

// Pieces calls fn with a line from its beginning to its end, in pieces of up to LongHead bytes, each with how many
// bytes follow. ErrNotFound when it is not stored.
func Pieces(ctx context.Context, snap Snapshot, generation, line int64, fn func(Line) error) error {
	for at, more := int64(0), int64(1); more > 0; {
		err := ErrNotFound
		lerr := snap.Lines(ctx, Span{generation, line, line + 1, LongHead, at}, func(l Line) error {
			at, more = at+int64(len(l.Raw)), l.Cut
			err = fn(l)
			return err
		})
		if err = cmp.Or(lerr, err); err != nil {
			return err
		}
	}
	return nil
}
