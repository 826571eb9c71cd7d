package sqlite

import (
	"archive/tar"
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/sqlstore"
)

var (
	// ErrInUse is for a database that another process has open.
	ErrInUse = errors.New("in use by another process")
	// ErrDamaged is for a backup, or a database, that is not whole.
	ErrDamaged = errors.New("damaged, or no database of ccship-server")
)

// Restore puts a backup instead of the database at path: the file 0600, written next to it, checked whole and only
// then given its name. fs.ErrExist when there is a database already and force is not set; with it, ErrInUse when
// another process has it open.
// What the backup has of cold storage goes to blocks, a location for it; "": the location of before.
func Restore(ctx context.Context, path string, from io.Reader, force bool, blocks string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if err := restore(ctx, path, from, force, blocks); err != nil {
		return fmt.Errorf("restore %s: %w", path, err)
	}
	return nil
}

func restore(ctx context.Context, path string, from io.Reader, force bool, blocks string) (err error) {
	if err := replaceable(ctx, path, force); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	database, archive, err := opened(from)
	if err != nil {
		return err
	}
	temp, err := sys.CreateFile(path)
	if err != nil {
		return err
	}
	defer temp.Discard()
	if _, err := io.Copy(temp, database); err != nil {
		return err
	}
	if err := temp.Seal(); err != nil {
		return err
	}
	err = inFile(temp.Name(), func(db *sql.DB) error {
		err := check(ctx, db)
		if err == nil { // with another id, every client compares what it has
			_, err = db.ExecContext(ctx, `UPDATE store_identity SET id = lower(hex(randomblob(16)))`)
		}
		if err == nil && archive != nil {
			err = lines.RestoreCold(ctx, dialect{db}, blocks, archive)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := replaceable(ctx, path, force); err != nil { // another may have come, or been opened, meanwhile
		return err
	}
	return putInPlace(temp.Name(), path)
}

// putInPlace gives a whole database file its name. SQLite would apply a log that lies there, whosever it is: no crash
// or power cut leaves one next to the new file.
func putInPlace(temp, path string) error {
	dir := filepath.Dir(path)
	if err := removeLog(path); err != nil {
		return err
	}
	if err := sys.SyncFolder(dir); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return sys.SyncFolder(dir)
}

// opened returns the database in a backup, and the archive that has it, if it has more.
func opened(from io.Reader) (database io.Reader, archive *tar.Reader, err error) {
	const magic = "SQLite format 3\x00"
	head := bufio.NewReader(from)
	if is, _ := head.Peek(len(magic)); string(is) == magic {
		return head, nil, nil
	}
	archive = tar.NewReader(head)
	h, err := archive.Next()
	if err != nil || h.Name != databaseEntry {
		return nil, nil, errors.Join(ErrDamaged, err)
	}
	return archive, archive, nil
}

// inFile runs fn on a database file that no other process uses.
func inFile(path string, fn func(*sql.DB) error) (err error) {
	db, err := sql.Open("sqlite", "file:"+uriPath(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(), removeLog(path)) }()
	db.SetMaxOpenConns(1)
	return fn(db)
}

// replaceable refuses to replace the database at path unasked, and one that another process has open. It puts the
// write-ahead log into the database: if nothing comes of the restore, that is whole.
func replaceable(ctx context.Context, path string, force bool) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Size() == 0:
		return nil
	case !force:
		return os.ErrExist
	}
	db, err := sql.Open("sqlite", "file:"+uriPath(path)+"?_busy_timeout=1000")
	if err != nil {
		return err
	}
	defer db.Close()
	// Only who is alone with a database can end its log.
	var mode string
	err = db.QueryRowContext(ctx, `PRAGMA journal_mode = DELETE`).Scan(&mode)
	if isBusy(err) || err == nil && mode != "delete" {
		return ErrInUse
	}
	return nil // or it is no database, and not in use
}

func removeLog(path string) error {
	for _, suffix := range []string{"-wal", "-shm", "-journal"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// check looks at all of a database.
func check(ctx context.Context, db *sql.DB) error {
	// Its header says that it has a log, which was not copied with it, nor had to be.
	var mode string
	if err := db.QueryRowContext(ctx, `PRAGMA journal_mode = DELETE`).Scan(&mode); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err := integrity(ctx, db); err != nil {
		return err
	}
	p, err := provider(db)
	if err != nil {
		return err
	}
	done, err := settled(ctx, db, p, sqlstore.Opening{AsIs: true})
	if !done || errors.Is(err, sqlstore.ErrOutdated) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// integrity has SQLite look at every page and row. ErrDamaged names the first thing it finds.
func integrity(ctx context.Context, db querier) error {
	var said string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&said); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if said != "ok" {
		return fmt.Errorf("%w: %s", ErrDamaged, said)
	}
	return nil
}
