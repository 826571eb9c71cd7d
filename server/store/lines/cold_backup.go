package lines

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ccship/ccship/server/store/sqlstore"
)

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
