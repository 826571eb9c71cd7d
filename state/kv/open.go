package kv

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/ccship/ccship/internal/sys"
)

const (
	lockWait     = 3 * time.Second // a daemon may need this long to stop
	keepCorrupt  = 2               // damaged files that are kept
	bigFile      = 64 << 20        // file size in bytes above which opening leaves much heap to return
	initialMmap  = 64 << 20        // bytes of address space; spares remaps, which wait for readers
	suffixNew    = ".new"          // a file that is being made
	suffixAside  = ".compact"      // a copy that is being made; compact.go
	suffixBroken = ".damaged"      // marker: damage that was found in use
	suffixLock   = ".lock"         // see lockFile
)

// Open opens the file at opt.Path, and makes it if there is none. It waits at most three seconds for another process
// that has it open (ErrLocked), unless NoWait is set. It moves a damaged file to <path>.corrupt-<time>, and replaces it
// by an empty one with a new epoch; SetAside returns the path. It does not touch a file of a newer ccship (ErrNewer)
// nor one of an earlier layout (ErrEarlier). It starts nothing: Run does.
func Open(ctx context.Context, opt Options) (*DB, error) {
	opt = opt.withDefaults()
	if opt.Path == "" {
		return nil, errors.New("open state: no path")
	}
	if err := os.MkdirAll(filepath.Dir(opt.Path), 0o700); err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	wait := lockWait
	if opt.NoWait {
		wait = 0
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	lock, err := lockFile(ctx, opt.Path+suffixLock)
	if err != nil {
		return nil, fmt.Errorf("open state %s: %w", opt.Path, err)
	}
	db := &DB{opt: opt, log: opt.Log, lock: lock, syncDir: sys.SyncFolder, group: committer{write: make(turn, 1)}}
	db.bell = make(chan struct{}, 1)
	db.broken, db.marked = make(chan struct{}), make(chan struct{})
	db.SetCompactAbove(opt.CompactAbove)
	if err := db.openOrReplace(); err != nil {
		if db.bolt != nil {
			_ = db.bolt.Close()
		}
		_ = lock.Release()
		return nil, fmt.Errorf("open state %s: %w", opt.Path, err)
	}
	return db, nil
}

// lockFile takes the lock, and waits for another process that has it until ctx ends: ErrLocked. It is on a file next to
// the state. bbolt locks the state file itself, but that file is replaced when it is compacted or set aside: a second
// process could then open the new file while the first still has the old one.
func lockFile(ctx context.Context, path string) (*sys.Lock, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		lock, err := sys.LockFile(path)
		if !errors.Is(err, sys.ErrLocked) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w (%s)", ErrLocked, path)
		case <-tick.C:
		}
	}
}

// openOrReplace opens the file, or sets a damaged one aside and opens an empty one in its place. First it removes what
// a crash left of a new or compacted file: the file itself is intact in both cases.
func (db *DB) openOrReplace() error {
	for _, suffix := range []string{suffixNew, suffixAside} {
		if err := os.Remove(db.opt.Path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	err := db.openOnce()
	if !errors.Is(err, ErrCorrupt) {
		return err
	}
	if db.bolt != nil {
		_ = db.bolt.Close()
		db.bolt = nil
	}
	aside, e := setAside(db.opt.Path)
	if e != nil {
		return errors.Join(err, e)
	}
	db.log.Warn("state was damaged and is set aside", "path", aside, "error", err)
	db.aside = aside
	return db.openOnce()
}

// openOnce opens the file, or makes it if there is none. checkFile checks it before bbolt maps it, because bbolt ends
// the process after some kinds of damage. ErrCorrupt comes from the marker that an earlier process left, from the
// pages, from the schema, or from a row that an owner could not read.
func (db *DB) openOnce() error {
	path := db.opt.Path
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// A marker that lies here is of a file that was moved away. Left, it would have the new one set aside.
		err := os.Remove(path + suffixBroken)
		if err == nil {
			err = sys.SyncFolder(filepath.Dir(path))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := create(path, &db.opt.Schema); err != nil {
			return err
		}
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory", path)
	default:
		if _, err := os.Stat(path + suffixBroken); err == nil {
			return fmt.Errorf("%w: found while it was in use", ErrCorrupt)
		}
		if err := checkFile(path); err != nil {
			return err
		}
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	b, info, err := openBolt(path, db.opt.MaxSize)
	if err != nil {
		return err
	}
	db.bolt, db.info = b, info
	return catch(func() error { return db.load(b) })
}

// load checks the schema, and loads what the owners keep in memory.
func (db *DB) load(b *bbolt.DB) error {
	err := b.View(func(tx *bbolt.Tx) error { return checkSchema(tx, db.opt.Schema.Version) })
	if err != nil {
		return err
	}
	if err := db.reload(b); err != nil {
		return err
	}
	return b.View(func(tx *bbolt.Tx) error {
		v, err := Unseal([]byte(keyEpoch), tx.Bucket([]byte(BucketMeta)).Get([]byte(keyEpoch)), 1)
		if err != nil {
			return fmt.Errorf("read epoch: %w", err)
		}
		db.epoch = string(v)
		db.giveBack(tx)
		if tx.Size() > bigFile {
			debug.FreeOSMemory() // bbolt's search for free pages needs a map of all pages
		}
		return nil
	})
}

// openBolt opens a file that passed checkFile. A panic of bbolt, or an error that it returns, becomes ErrCorrupt.
func openBolt(path string, maxSize int) (b *bbolt.DB, info os.FileInfo, err error) {
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	defer func() {
		if p := recover(); p != nil {
			b, info, err = nil, nil, fmt.Errorf("%w: %v", ErrCorrupt, p)
		}
	}()
	b, err = bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout: lockWait, InitialMmapSize: mmapSize, MaxSize: maxSize,
		// Without a free list on disk: after a drained backlog each commit would write it whole.
		FreelistType: bbolt.FreelistMapType, NoFreelistSync: true,
		OpenFile: func(path string, flag int, _ os.FileMode) (f *os.File, err error) {
			if f, err = sys.OpenOwn(path, flag); err == nil {
				info, err = f.Stat()
			}
			return f, err
		},
	})
	switch {
	case err == nil:
		b.AllocSize = leastGrowth
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, nil, ErrLocked
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum),
		errors.Is(err, bolterrors.ErrVersionMismatch):
		return nil, nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return b, info, err
}

// create makes an empty file. It works under another name and renames the file once it is on disk,
// because a power cut while bbolt initialises a file leaves one that cannot be opened.
func create(path string, schema *Schema) error {
	fresh := path + suffixNew
	b, _, err := openBolt(fresh, 0)
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	b.NoSync = true // Sync at the end writes all: nobody opens the file before
	epoch := make([]byte, 16)
	_, _ = rand.Read(epoch) // never fails
	// Twice, so that both of bbolt's roots are ours: each alone must be enough.
	for range 2 {
		err = errors.Join(err, b.Update(func(tx *bbolt.Tx) error {
			for _, name := range schema.Buckets {
				if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
					return err
				}
			}
			meta, err := tx.CreateBucketIfNotExists([]byte(BucketMeta))
			if err != nil {
				return err
			}
			key := []byte(keyEpoch)
			if err := meta.Put(key, Seal(key, append(NewSealed(1, 32), hex.EncodeToString(epoch)...))); err != nil {
				return err
			}
			err = meta.Put([]byte(keySchema), binary.BigEndian.AppendUint32(nil, schema.Version))
			if err != nil {
				return err
			}
			return SumRows(tx)
		}))
	}
	if err = errors.Join(err, b.Sync(), b.Close()); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	return replace(fresh, path)
}

// replace puts a file instead of another, so that after a power cut one of them is there. The caller has synced from.
func replace(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return sys.SyncFolder(filepath.Dir(to))
}

// setAside renames a damaged file and removes the oldest of those set aside before. It moves the file first and its
// marker second: a crash in between sets the next file aside too; in the other order the damaged file would be opened.
func setAside(path string) (string, error) {
	stamp := path + ".corrupt-" + time.Now().UTC().Format("20060102T150405.000000000Z")
	if err := replace(path, stamp); err != nil {
		return "", fmt.Errorf("set damaged state aside: %w", err)
	}
	if err := os.Remove(path + suffixBroken); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("set damaged state aside: %w", err)
	}
	_ = removeOldest(path) // a failure must not prevent the start
	return stamp, nil
}

// removeOldest removes all but the newest of the damaged copies: a failing disk must not be filled with them.
func removeOldest(path string) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	var old []string
	for _, e := range entries {
		if ok, _ := filepath.Match(filepath.Base(path)+".corrupt-*", e.Name()); ok {
			old = append(old, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	slices.Sort(old)
	for len(old) > keepCorrupt {
		err = errors.Join(err, os.Remove(old[0]))
		old = old[1:]
	}
	return err
}
