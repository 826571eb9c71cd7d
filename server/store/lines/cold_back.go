package lines

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// Return implements server.Cooler.
func (t *Tier) Return(ctx context.Context, since, until time.Time,
	progress func(server.Returned)) (done server.Returned, err error) {
	for after := (object{}); ; {
		page, err := sqlstore.List(ctx, t.db, `SELECT `+objectColumns+` FROM cold_objects o
JOIN streams s ON s.owner = o.owner AND s.id = o.stream
WHERE `+inUse+` AND s.last_received >= ? AND s.last_received < ? AND (o.owner, o.stream, o.id) > (?, ?, ?)
ORDER BY o.owner, o.stream, o.id LIMIT ?`,
			[]any{since.UnixMicro(), until.UnixMicro(), after.owner, after.stream, after.id, pagePending}, scanObject)
		if err != nil {
			return done, fmt.Errorf("look for what is in cold storage: %w", err)
		}
		for _, after = range page {
			switch err := t.returnObject(ctx, after); {
			case errors.Is(err, errObjectDamaged):
				done.Damaged++ // verify names its lines
			case err != nil:
				return done, err
			default:
				done.Objects, done.Bytes = done.Objects+1, done.Bytes+after.size
			}
			progress(done)
		}
		if len(page) < pagePending {
			return done, t.Sweep(ctx)
		}
	}
}

// returnObject puts what is used of an object back where it came from, in one transaction, after which the object is
// removed.
func (t *Tier) returnObject(ctx context.Context, o object) error {
	data, err := t.fetch(ctx, o)
	if errors.Is(err, sqlstore.ErrSwept) {
		return nil // returned by another
	}
	if err == nil && len(data) == 0 {
		err = errObjectDamaged
	}
	if err != nil {
		return err
	}
	return t.db.Write(ctx, func(d sqlstore.Dialect) error {
		thaw := o.thawBlocks
		if o.stream == 0 {
			thaw = o.thawChunk
		}
		if err := thaw(ctx, d, data); err != nil {
			return fmt.Errorf("bring back what was cold: %w", err)
		}
		if err := t.lines.step("return object"); err != nil {
			return err
		}
		return doom(ctx, d, o)
	})
}

// thawBlocks puts an object's bytes back into the blocks that use them.
func (o object) thawBlocks(ctx context.Context, d sqlstore.Dialect, data []byte) error {
	if there, err := o.lockStream(ctx, d); err != nil || !there {
		return err
	}
	// coalesce says which type the bytes have.
	_, err := d.Exec(ctx, `UPDATE blocks SET
  data = substr(coalesce(?, data), CAST(place + 1 AS integer), CAST(size AS integer)), object = '', place = 0, size = 0
WHERE owner = ? AND stream = ? AND object = ?`, data, o.owner, o.stream, o.id)
	if err != nil {
		return err
	}
	_, err = d.Exec(ctx, `UPDATE streams SET cooled = -1 WHERE owner = ? AND id = ?`, o.owner, o.stream)
	return err
}

// thawChunk puts an object's bytes back into the file that uses them. It counts as new, so that it stays a while.
func (o object) thawChunk(ctx context.Context, d sqlstore.Dialect, data []byte) error {
	_, err := d.Exec(ctx, `UPDATE blobs SET touched = ? WHERE owner = ? AND id = ?`, now(), o.owner, o.blob)
	if err == nil {
		_, err = d.Exec(ctx, `UPDATE blob_chunks SET data = ?, object = '' WHERE owner = ? AND blob = ? AND object = ?`,
			data, o.owner, o.blob, o.id)
	}
	return err
}

// backingUp is how leases of those begin who copy everything: nothing is removed meanwhile.
const backingUp = "backup "

// ErrBackup is for a backup whose objects are not all there, or not as they were.
var ErrBackup = errors.New("the backup lacks what was in cold storage")

// Hold keeps everybody from removing objects until the function is called that it returns.
func (t *Tier) Hold(ctx context.Context) (release func() error, err error) {
	name := backingUp + rand.Text()
	if _, err := t.lease(ctx, name, holdFor); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		tick := time.NewTicker(holdFor / 4)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				ended <- t.release(ctx, name)
				return
			case <-tick.C:
				_, _ = t.lease(ctx, name, holdFor) // there is time to try it again
			}
		}
	}()
	return func() error { stop(); return <-ended }, nil
}

// ColdInUse lists the objects that a database uses at the moment that d sees.
func ColdInUse(ctx context.Context, d sqlstore.Dialect) (listCold, error) {
	out, err := sqlstore.List(ctx, d, `SELECT `+objectColumns+` FROM cold_objects o WHERE `+inUse+`
ORDER BY o.owner, o.stream, o.blob, o.id`, nil, scanObject)
	return out, sqlstore.Wrap(err, "list cold objects")
}

// listCold is objects.
type listCold []object

// entry returns the name of an object in a backup.
func (o object) entry() string {
	return fmt.Sprintf("objects/%d/%d/%d/%s", o.owner, o.stream, o.blob, o.id)
}

// CopyTo writes the objects of a list to a backup.
func (t *Tier) CopyTo(ctx context.Context, to *tar.Writer, list listCold) error {
	for _, o := range list {
		data, err := t.read(ctx, t.name(o), o.size)
		if err == nil && !o.proves(data) {
			err = errObjectDamaged
		}
		if err == nil {
			err = to.WriteHeader(&tar.Header{Name: o.entry(), Mode: 0o600, Size: o.size, Typeflag: tar.TypeReg})
		}
		if err == nil {
			_, err = to.Write(data)
		}
		if err != nil {
			return fmt.Errorf("copy cold object %s: %w", t.name(o), err)
		}
	}
	return nil
}

// RestoreCold puts the objects of a backup into a location, in a new folder there: the database that the backup was
// made from may go on using its own. location is a URL; "": the location of before. d is the database as it is in the
// backup.
func RestoreCold(ctx context.Context, d sqlstore.Dialect, place string, from *tar.Reader) error {
	t := &Tier{id: strings.ToLower(rand.Text()), place: place}
	if place == "" {
		err := d.Query(ctx, `SELECT place FROM cold`, nil, func(row sqlstore.Scanner) error { return row.Scan(&t.place) })
		if err != nil {
			return fmt.Errorf("read the place of blocks: %w", err)
		}
	}
	var err error
	if t.objects, err = openObjects(t.place); err != nil {
		return err
	}
	list, err := ColdInUse(ctx, d)
	if err != nil {
		return err
	}
	for _, o := range list {
		h, err := from.Next()
		if err != nil || h.Name != o.entry() {
			return errors.Join(fmt.Errorf("%w: %s is missing", ErrBackup, o.entry()), err)
		}
		data, err := io.ReadAll(io.LimitReader(from, o.size+1))
		if err != nil || !o.proves(data) {
			return errors.Join(fmt.Errorf("%w: %s is damaged", ErrBackup, o.entry()), err)
		}
		if err := t.use(func() error { return t.objects.Put(ctx, t.name(o), data) }); err != nil {
			return err
		}
	}
	if err := t.use(func() error { return t.objects.Put(ctx, t.marker(), []byte(t.id)) }); err != nil {
		return err
	}
	_, err = d.Exec(ctx, `UPDATE cold SET id = ?, place = ?`, t.id, t.place)
	for _, query := range []string{`DELETE FROM cold_objects AS o WHERE NOT ` + inUse, `DELETE FROM leases`} {
		if err == nil {
			_, err = d.Exec(ctx, query) // they are of the location of before
		}
	}
	return sqlstore.Wrap(err, "write the place of blocks down")
}

// cache keeps objects that were read last, and reads each of them once for all who ask at the same time. Nobody writes
// to its bytes.
type cache struct {
	most int64

	reads singleflight.Group

	mu    sync.Mutex
	size  int64
	kept  map[string][]byte
	order []string // of kept, the one used last at the end
}

func newCache(most int64) *cache {
	return &cache{most: most, kept: map[string][]byte{}}
}

// find returns an object that is there.
func (c *cache) find(id string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	data, ok := c.kept[id]
	if ok {
		c.order = append(slices.DeleteFunc(c.order, func(x string) bool { return x == id }), id)
	}
	return data, ok
}

// get returns an object, which read reads unless it is there or a caller reads it. read goes on when ctx is done:
// others may wait for it.
func (c *cache) get(ctx context.Context, id string, read func(context.Context) ([]byte, error)) ([]byte, error) {
	if data, ok := c.find(id); ok {
		return data, nil
	}
	answer := c.reads.DoChan(id, func() (any, error) {
		data, err := read(context.WithoutCancel(ctx))
		if err == nil {
			c.add(id, data)
		}
		return data, err
	})
	select {
	case r := <-answer:
		data, _ := r.Val.([]byte)
		return data, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// add keeps an object, however large it is, and lets those go that were used longest ago.
func (c *cache) add(id string, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, have := c.kept[id]; have {
		return
	}
	c.kept[id], c.order, c.size = data, append(c.order, id), c.size+int64(len(data))
	for c.size > c.most && len(c.order) > 1 {
		c.drop(c.order[0])
	}
}

func (c *cache) drop(id string) {
	c.size -= int64(len(c.kept[id]))
	delete(c.kept, id)
	c.order = slices.DeleteFunc(c.order, func(x string) bool { return x == id })
}

// forget lets an object go.
func (c *cache) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(id)
}
