package lines

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// errColdMoved says that what an object was made from has changed since. The next pass sees what is there then.
var errColdMoved = errors.New("it changed meanwhile")

func now() int64 { return sqlstore.Micros(time.Now()) }

// cooling is the lease of who moves.
const cooling = "cold"

// pageStreams is how many streams are looked at at once.
const pageStreams = 200

// Cool implements server.Cooler.
func (t *Tier) Cool(ctx context.Context, before time.Time) (done server.Cooled, err error) {
	if t.objects == nil {
		return done, nil
	}
	err = t.leading(ctx, func() error {
		if err := t.Sweep(ctx); err != nil {
			return err
		}
		m := mover{t, sqlstore.Micros(before), &done}
		return errors.Join(sqlstore.Wrap(m.streams(ctx), "move blocks"), sqlstore.Wrap(m.files(ctx), "move files"))
	})
	return done, err
}

// leading runs fn unless another process moves something, at a location that is ready.
func (t *Tier) leading(ctx context.Context, fn func() error) (err error) {
	mine, err := t.lease(ctx, cooling, objectLease)
	if err != nil || !mine {
		return err
	}
	defer func() { err = errors.Join(err, t.release(ctx, cooling)) }()
	if err := t.ready(ctx); err != nil {
		return err
	}
	return fn()
}

// CoolOf moves blocks and files of streams of an owner, however old they are: of only some generations, and then no
// files, if those are named.
func (t *Tier) CoolOf(ctx context.Context, owner int64, streams []int64,
	only []Place) (done server.Cooled, err error) {
	if t.objects == nil {
		return done, fmt.Errorf("%w: this store has no place for blocks; start the server with --blocks", server.ErrCold)
	}
	err = t.leading(ctx, func() error {
		m := mover{t, now(), &done}
		for _, at := range only {
			if err := m.generation(ctx, at); err != nil && !errors.Is(err, errColdMoved) {
				return fmt.Errorf("move blocks: %w", err)
			}
		}
		if len(only) > 0 {
			return nil
		}
		for _, id := range streams {
			if err := m.named(ctx, owner, id); err != nil {
				return err
			}
		}
		return nil
	})
	return done, err
}

// named moves all of one stream.
func (m *mover) named(ctx context.Context, owner, id int64) error {
	version, err := sqlstore.Number(ctx, m.db, `SELECT version FROM streams WHERE owner = ? AND id = ?`, owner, id)
	if err == nil {
		err = m.stream(ctx, objectStream{owner, id, version})
	}
	if err != nil {
		return fmt.Errorf("move blocks: %w", err)
	}
	_, err = m.listed(ctx, `SELECT DISTINCT b.owner, b.id, b.sha256 FROM blob_refs r
JOIN blobs b ON b.owner = ? AND b.sha256 = r.sha256 WHERE r.owner = ? AND r.stream = ? AND b.stored > 0
  AND EXISTS (SELECT 1 FROM blob_chunks c WHERE c.owner = b.owner AND c.blob = b.id AND c.object = '')
ORDER BY b.id`, owner, owner, id)
	return sqlstore.Wrap(err, "move files")
}

// ready marks a location that nothing is in yet, and refuses one of another database.
func (t *Tier) ready(ctx context.Context) error {
	err := t.prove(ctx)
	if err == nil || !errors.Is(err, server.ErrCold) {
		return err
	}
	noted, err := sqlstore.Number(ctx, t.db, `SELECT 1 FROM cold_objects LIMIT 1`)
	if err != nil {
		return fmt.Errorf("look for cold objects: %w", err)
	}
	if noted > 0 {
		return t.prove(ctx) // again: another pass may have marked the location and moved something since
	}
	if err := t.lines.step("mark place"); err != nil {
		return err
	}
	return t.use(func() error { return t.objects.Put(ctx, t.marker(), []byte(t.id)) })
}

// mover is one pass over what may be moved.
type mover struct {
	*Tier
	before int64
	done   *server.Cooled
}

// objectStream is one that may have something to move.
type objectStream struct{ owner, id, version int64 }

// streams moves old streams. What fails for one ends nothing for the others, unless the location does not answer.
func (m *mover) streams(ctx context.Context) error {
	var failed failures
	for last := int64(0); ; {
		page, err := sqlstore.List(ctx, m.db, `
SELECT s.owner, s.id, s.version FROM streams s
WHERE s.id > ? AND s.last_received < ? AND s.cooled <> s.version ORDER BY s.id LIMIT ?`,
			[]any{last, m.before, pageStreams},
			func(row sqlstore.Scanner) (s objectStream, err error) {
				return s, row.Scan(&s.owner, &s.id, &s.version)
			})
		if err != nil {
			return failed.with(fmt.Errorf("look for old streams: %w", err))
		}
		for _, s := range page {
			err := m.stream(ctx, s)
			if err != nil {
				failed.add(fmt.Errorf("stream %d: %w", s.id, err))
			}
			if ctx.Err() != nil || errors.Is(err, server.ErrCold) {
				return failed.with(ctx.Err())
			}
			last = s.id
		}
		if len(page) < pageStreams {
			return failed.with(nil)
		}
	}
}

// stream moves a stream's blocks, and notes that nothing is left.
func (m *mover) stream(ctx context.Context, s objectStream) error {
	if mine, err := m.lease(ctx, cooling, objectLease); err != nil || !mine {
		return errors.Join(err, ctx.Err())
	}
	// Looked for first: lines that are packed from here on are in blocks that may not be seen below.
	hot, err := sqlstore.Number(ctx, m.db, `SELECT 1 FROM lines WHERE owner = ? AND stream = ? LIMIT 1`, s.owner, s.id)
	if err != nil {
		return fmt.Errorf("look for lines: %w", err)
	}
	places, err := sqlstore.List(ctx, m.db, `
SELECT DISTINCT epoch, generation FROM blocks WHERE owner = ? AND stream = ? ORDER BY epoch, generation`,
		[]any{s.owner, s.id}, func(row sqlstore.Scanner) (at Place, err error) {
			at.Owner, at.Stream = s.owner, s.id
			return at, row.Scan(&at.Epoch, &at.Generation)
		})
	if err != nil {
		return fmt.Errorf("look for blocks: %w", err)
	}
	for _, at := range places {
		if err := m.generation(ctx, at); errors.Is(err, errColdMoved) {
			return nil
		} else if err != nil {
			return err
		}
	}
	if hot > 0 {
		return nil
	}
	return m.db.Change(ctx, `UPDATE streams SET cooled = ? WHERE owner = ? AND id = ?`, s.version, s.owner, s.id)
}

// part is a block's data in an object.
type part struct {
	at          Place
	first       int64
	sha256      []byte // of the block
	place, size int64
}

func (m *mover) generation(ctx context.Context, at Place) error {
	for after := int64(-1); ; {
		parts, data, err := m.gather(ctx, at, after)
		if err != nil || len(parts) == 0 {
			return err
		}
		o := newObject(data)
		o.owner, o.stream = at.Owner, at.Stream
		err = m.move(ctx, o, data, func(d sqlstore.Dialect) error { return dropBlocks(ctx, d, o, parts) })
		if err != nil {
			return err
		}
		after = parts[len(parts)-1].first
	}
}

// gather reads blocks that have their data, behind one, until they fill an object.
func (m *mover) gather(ctx context.Context, at Place, after int64) (parts []part, data []byte, err error) {
	const few = 8 // of about 25 KB each
	for len(data) < objectSize {
		n := 0
		err := m.db.Query(ctx, `SELECT first, sha256, data FROM blocks`+ofPlace+`
AND first > ? AND raw_bytes > 0 AND object = '' ORDER BY first LIMIT ?`, at.args(after, few),
			func(row sqlstore.Scanner) error {
				if len(data) >= objectSize {
					return errEnough
				}
				var b []byte
				p := part{at: at}
				if err := row.Scan(&p.first, &p.sha256, &b); err != nil {
					return err
				}
				n, after = n+1, p.first
				p.place, p.size = int64(len(data)), int64(len(b))
				parts, data = append(parts, p), append(data, b...)
				return nil
			})
		if err != nil && !errors.Is(err, errEnough) {
			return nil, nil, fmt.Errorf("read blocks: %w", err)
		}
		if n < few {
			break
		}
	}
	return parts, data, nil
}

func newObject(data []byte) object {
	sum := sha256.Sum256(data)
	return object{id: rand.Text(), size: int64(len(data)), sha256: sum[:]}
}

// dropBlocks takes the data of blocks out of the database.
func dropBlocks(ctx context.Context, d sqlstore.Dialect, o object, parts []part) error {
	if there, err := o.lockStream(ctx, d); err != nil || !there {
		return cmp.Or(err, errColdMoved)
	}
	for _, p := range parts {
		n, err := d.Exec(ctx, `UPDATE blocks SET data = ?, object = ?, place = ?, size = ?`+ofPlace+
			` AND first = ? AND sha256 = ? AND object = ''`,
			append([]any{[]byte{}, o.id, p.place, p.size}, p.at.args(p.first, p.sha256)...)...)
		if err == nil && n != 1 {
			err = errColdMoved
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// move writes an object, reads it back, and only then lets drop take its bytes out of the database.
func (m *mover) move(ctx context.Context, o object, data []byte, drop func(sqlstore.Dialect) error) error {
	if err := m.note(ctx, o); err != nil {
		return err
	}
	err := m.put(ctx, o, data)
	if err == nil {
		err = m.lines.step("drop what is cold")
	}
	if err == nil {
		err = m.drop(ctx, o, drop)
	}
	if err == nil {
		m.done.Objects, m.done.Bytes = m.done.Objects+1, m.done.Bytes+o.size
		return m.lines.step("dropped what is cold")
	}
	if errors.Is(err, errColdMoved) { // others, that may be over soon, leave the object to Sweep
		return errors.Join(err, m.undo(ctx, o))
	}
	return err
}

// note writes down that an object will be written.
func (m *mover) note(ctx context.Context, o object) error {
	if err := m.lines.step("note object"); err != nil {
		return err
	}
	err := m.db.Change(ctx, `INSERT INTO cold_objects (owner, stream, blob, id, size, sha256, state, at)
VALUES (?, ?, ?, ?, ?, ?, 0, ?) ON CONFLICT (owner, stream, blob, id) DO NOTHING`,
		append(o.key(), o.size, o.sha256, now())...)
	return sqlstore.Wrap(err, "note object")
}

// put writes an object and proves that the location has it.
func (m *mover) put(ctx context.Context, o object, data []byte) error {
	if err := m.lines.step("write object"); err != nil {
		return err
	}
	if err := m.use(func() error { return m.objects.Put(ctx, m.name(o), data) }); err != nil {
		return err
	}
	if err := m.lines.step("read object back"); err != nil {
		return err
	}
	back, err := m.read(ctx, m.name(o), o.size)
	if err == nil && !o.proves(back) || errors.Is(err, errNoObject) {
		err = fmt.Errorf("%w: %s does not give back what was written to it", server.ErrCold, m.place)
	}
	return err
}

// drop has an object used and its bytes removed, in one transaction.
func (m *mover) drop(ctx context.Context, o object, drop func(sqlstore.Dialect) error) error {
	err := m.db.Write(ctx, func(d sqlstore.Dialect) error {
		state := int64(-1)
		err := d.Lock(ctx, `SELECT state FROM cold_objects`+ofObject, o.key(),
			func(row sqlstore.Scanner) error { return row.Scan(&state) })
		switch {
		case err != nil:
			return err
		case state == used:
			return nil // by the try before, whose answer was lost
		case state != writing:
			return errColdMoved
		}
		if err := drop(d); err != nil {
			return err
		}
		_, err = d.Exec(ctx, `UPDATE cold_objects SET state = 1, at = ?`+ofObject, o.with(now())...)
		return err
	})
	return sqlstore.Wrap(err, "drop what is cold")
}
