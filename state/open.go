package state

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
)

const (
	lockWait     = 3 * time.Second
	keepCorrupt  = 2
	bigFile      = 64 << 20 // bytes of file from which opening leaves a heap worth returning
	initialMmap  = 64 << 20 // bytes of address space; spares remaps, which wait for readers
	suffixNew    = ".new"
	suffixAside  = ".compact"
	suffixBroken = ".damaged"
	suffixLock   = ".lock"
)

// Open opens the state at opt.Path, and makes it when there is none. It waits at most three seconds for another
// process that has it open (ErrLocked), unless told not to. A damaged file is set aside as <path>.corrupt-<time>, and the state begins
// anew, in a new epoch; Notices says so. A file of a newer ccship is not touched (ErrNewer). Nothing runs until Run.
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
	db := &DB{opt: opt, log: opt.Log, lock: lock, index: newIndex(), bell: make(chan struct{}, 1), broken: make(chan struct{})}
	db.room.limits = Limits{opt.Cap, opt.HeadRoom, opt.CompactAbove}
	if err := db.openOrBeginAnew(); err != nil {
		if db.bolt != nil {
			_ = db.bolt.Close()
		}
		_ = lock.release()
		return nil, fmt.Errorf("open state %s: %w", opt.Path, err)
	}
	return db, nil
}

// openOrBeginAnew opens the file, or sets a damaged one aside and opens a fresh one.
func (db *DB) openOrBeginAnew() error {
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
		db.bolt, db.index = nil, newIndex()
	}
	aside, e := setAside(db.opt.Path)
	if e != nil {
		return errors.Join(err, e)
	}
	db.log.Warn("state was damaged and is set aside", "path", aside, "error", err)
	db.notices = append(db.notices, Notice{
		Kind: "state_corrupt",
		Text: fmt.Sprintf("The state file was damaged. It was set aside as %s, and every transcript is sent again.", aside),
		Hint: "Check the disk. The file set aside can be removed when nothing is missed.",
	})
	return db.openOnce()
}

// openOnce opens the file as it is, or makes one where there is none.
func (db *DB) openOnce() error {
	path := db.opt.Path
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := create(path, len(db.opt.migrations)+1); err != nil {
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
	b, err := openBolt(path, db.opt.maxSize)
	if err != nil {
		return err
	}
	db.bolt = b
	return db.guard(func() error { return db.load(b) })
}

// openBolt opens a checked file. A panic of bbolt, and what it refuses, is ErrCorrupt.
func openBolt(path string, maxSize int) (b *bbolt.DB, err error) {
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	defer func() {
		if p := recover(); p != nil {
			b, err = nil, fmt.Errorf("%w: %v", ErrCorrupt, p)
		}
	}()
	b, err = bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout: lockWait, FreelistType: bbolt.FreelistMapType, NoFreelistSync: true, InitialMmapSize: mmapSize, MaxSize: maxSize,
	})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, ErrLocked
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return b, err
}

// create makes an empty state of a schema version. Under another name, for a power cut while bbolt initialises a
// file leaves one that can't be opened.
func create(path string, schema int) error {
	fresh := path + suffixNew
	b, err := openBolt(fresh, 0)
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	epoch := make([]byte, 16)
	_, _ = rand.Read(epoch) // never fails
	// Twice, so that both of bbolt's roots are ours: either one alone must do.
	for range 2 {
		err = errors.Join(err, b.Update(func(tx *bbolt.Tx) error {
			for _, name := range bucketNames() {
				if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
					return err
				}
			}
			meta := tx.Bucket([]byte(bucketMeta))
			if err := meta.Put([]byte(keyEpoch), seal([]byte(keyEpoch), append(newSealed(1, 32), hex.EncodeToString(epoch)...))); err != nil {
				return err
			}
			return meta.Put([]byte(keySchema), binary.BigEndian.AppendUint32(nil, uint32(schema)))
		}))
	}
	if err = errors.Join(err, b.Sync(), b.Close()); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	return replace(fresh, path)
}

// replace puts a file in place of another so that either is there after a power cut.
func replace(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncDir(filepath.Dir(to))
}

// setAside renames a damaged file and removes the oldest of those set aside before.
func setAside(path string) (string, error) {
	stamp := path + ".corrupt-" + time.Now().UTC().Format("20060102T150405.000000000Z")
	if err := replace(path, stamp); err != nil {
		return "", fmt.Errorf("set damaged state aside: %w", err)
	}
	if err := os.Remove(path + suffixBroken); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("set damaged state aside: %w", err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return stamp, nil // those of before stay; no reason not to start
	}
	var old []string
	for _, e := range entries {
		if ok, _ := filepath.Match(filepath.Base(path)+".corrupt-*", e.Name()); ok {
			old = append(old, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	slices.Sort(old)
	for len(old) > keepCorrupt {
		_ = os.Remove(old[0])
		old = old[1:]
	}
	return stamp, nil
}

// markDamaged leaves word for the next Open, and ends Run.
func (db *DB) markDamaged(cause error) {
	db.damage.Do(func() {
		db.log.Error("state is damaged", "path", db.opt.Path, "error", cause)
		if err := os.WriteFile(db.opt.Path+suffixBroken, []byte(cause.Error()+"\n"), 0o600); err != nil {
			db.log.Error("marking the state as damaged failed", "path", db.opt.Path, "error", err)
		}
		close(db.broken)
	})
}
