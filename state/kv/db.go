// Package kv keeps rows in one bbolt file that survives: kill -9 at any instruction, a full disk, a power cut, a bit
// that rots. It commits the requests of concurrent callers together (committer.go), checks the pages of a file before
// bbolt maps them (check.go) and that no row is missing (sum.go), sets a damaged file aside, compacts a mostly empty
// one while it is in use (compact.go), and lets one process at a time have it (lock_*.go).
//
// It knows keys, values and what its owners keep of them in memory (Memory). It does not know the meaning of rows:
// cursors, batches and sessions belong to its owners. Only this package uses bbolt.
//
// Every step of a write has a name ("put row", "commit"), and a test can make each of them fail (Options.Fault). A
// transaction then happens as a whole or not at all, on disk and in memory.
//
// Each row ends with a CRC-32C over key and value, so a damaged row is found before it is used and cannot pass for
// another one. It does not show that a row is there: a bit in a page can hide rows. So the bucket meta holds a sum
// over all rows and sequences, which each transaction updates from what it writes, not from what it finds.
//
// The first failure of the file is its last use. bbolt panics over a damaged page and may keep its locks, so that
// every later call would wait for ever. Panics and memory faults become ErrCorrupt, errors of the device ErrFailed;
// from then on no call reaches bbolt, Run ends, and the next Open sets a damaged file aside. A full disk is no
// failure.
package kv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/ccship/ccship/internal/sys"
)

var (
	// ErrNewer means that a newer ccship wrote the file. Open leaves it as it is.
	ErrNewer = errors.New("state is from a newer ccship")
	// ErrEarlier means that an earlier ccship wrote the file, with another layout. Open leaves it as it is.
	ErrEarlier = errors.New("state is from an earlier ccship")
	// ErrLocked means that another process has the file open.
	ErrLocked = errors.New("state is in use by another process")
	// ErrCorrupt means that the file is damaged. Open sets such a file aside. Damage found later ends Run, and the next
	// Open sets the file aside.
	ErrCorrupt = errors.New("state is damaged")
	// ErrFailed means that the disk or the system made the open file unusable. It ends Run; the next Open checks whether
	// the file is intact.
	ErrFailed = errors.New("state can no longer be used")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("state is closed")
)

// Options say where the file is and what it holds. Path and Schema are required.
type Options struct {
	Path   string
	Schema Schema
	// Memory is what the owners keep of their rows in memory. It follows every commit, in this order.
	Memory []Memory
	// CompactAbove is the file size in bytes above which a mostly empty file is compacted; default 64 MiB. It can be
	// changed with SetCompactAbove.
	CompactAbove int64
	// Drained reports that the file holds no backlog: it is then compacted sooner, because its empty pages are not needed
	// soon. It must not call the DB. nil: never.
	Drained func() bool
	// NoWait returns ErrLocked at once when another process has the file open.
	NoWait bool
	Log    *slog.Logger // nil: discard
	// Fault is called before every named step of a write; an error makes that step fail. For tests; nil: no step fails.
	Fault func(step string) error
	// FreeDisk returns the free and total bytes of the disk that dir is on. nil: ask the system.
	FreeDisk func(dir string) (free, total uint64, err error)
	// MaxSize limits the size of the file in bytes. For tests, to simulate a full disk; 0: no limit.
	MaxSize int
}

// Memory is what an owner keeps of its rows in memory, to avoid reading them. Neither method may call the DB.
type Memory interface {
	// Load reads all of it from the file, and checks the rows. Open calls it, and so does a write after a commit that
	// failed half-way, because the disk may or may not have that commit. An error leaves the memory as it was; ErrCorrupt
	// sets the file aside.
	Load(tx *Snapshot) error
	// Begin begins the changes of one write transaction. It is called once per transaction, before the first request.
	Begin(tx *Tx) Changes
}

// Changes are what one write transaction will change in memory. Requests that share the transaction share them.
type Changes interface {
	// Finish is the last part of a transaction that wrote something. An error rolls all of it back.
	Finish() error
	// Apply makes the changes visible once the transaction is on disk; it is not called if the commit fails. No other
	// write runs meanwhile.
	Apply()
}

// DB is the open file. Safe for concurrent use.
type DB struct {
	opt   Options
	log   *slog.Logger
	epoch string
	aside string // where Open put a damaged file; "" if there was none
	lock  *sys.Lock

	syncDir func(dir string) error // tests put another in its place

	// A transaction holds handle for reading, so that the file cannot be swapped under it.
	handle sync.RWMutex
	bolt   *bbolt.DB   // guarded by handle; nil after Close, or when reopening the file after a swap failed
	info   os.FileInfo // guarded by handle; of the open file
	closed atomic.Bool // set when Close begins

	lastTx atomic.Int64 // the last transaction that the file is known to have; changes under handle or group.write

	group committer
	stale bool // guarded by group.write; a commit failed half-way, and Memory is to be loaded before the next one

	sum uint64 // guarded by group.write; of all rows as the last commit left them, whatever happens to the pages

	bell     chan struct{} // something happened: Run looks in a second
	activity atomic.Int64  // what happened so far, counted by Wake

	fails   sync.Once
	cause   error         // why the file cannot be used any more; set before broken is closed
	broken  chan struct{} // closed once the file proved damaged or unusable
	marked  chan struct{} // closed once the next Open will know of the damage
	closing sync.Mutex    // held by Close

	compactAbove atomic.Int64
	empty        atomic.Int64 // bytes of the file's empty pages, after the last commit
	mapped       atomic.Int64 // bytes of files in memory when pages were given back
	touched      atomic.Int64 // bytes of rows touched since pages were given back
	scrubs       atomic.Bool  // Scrub was called
}

const defaultCompactAbove = 64 << 20

func (o Options) withDefaults() Options {
	if o.FreeDisk == nil {
		o.FreeDisk = FreeDisk
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Drained == nil {
		o.Drained = func() bool { return false }
	}
	return o
}

// Epoch returns the random name of this file; it changes when a damaged file is replaced by an empty one.
func (db *DB) Epoch() string { return db.epoch }

// SetAside returns the path to which Open moved a damaged file; "" if it found none.
func (db *DB) SetAside() string { return db.aside }

// SetCompactAbove changes Options.CompactAbove; 0 is the default.
func (db *DB) SetCompactAbove(size int64) {
	if size <= 0 {
		size = defaultCompactAbove
	}
	db.compactAbove.Store(size)
}

// Empty returns the bytes of empty pages in the file: so many can be written before the file grows.
func (db *DB) Empty() int64 { return db.empty.Load() }

// FileSize returns the size of the file in bytes; 0 when it is unknown.
func (db *DB) FileSize() int64 {
	info, err := os.Stat(db.opt.Path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// FreeDisk returns the free and total bytes of the disk that the file is on.
func (db *DB) FreeDisk() (free, total uint64, err error) {
	return db.opt.FreeDisk(filepath.Dir(db.opt.Path))
}

// Alive returns nil once a transaction could run, after those that wait already. It writes nothing, so a watchdog may
// call it often. An error says why the file cannot be used, or that ctx ended first, as when a disk hangs.
func (db *DB) Alive(ctx context.Context) error {
	return db.Update(ctx, 0, func(*Tx) error { return nil })
}

// Run does the background work until ctx is done: it compacts a mostly empty file and returns touched pages to the
// system. A second after an event it calls check, and then every second while check returns true. It sleeps while
// nothing happens: an idle daemon must not wake a laptop's processor. An error, ErrCorrupt among them, means that the
// file can no longer be used. Run then returns at once, and does not wait for work that may hang in bbolt.
func (db *DB) Run(ctx context.Context, check func() (again bool)) error {
	done := make(chan struct{})
	go func() { defer close(done); db.work(ctx, check) }()
	select {
	case <-done:
	case <-db.broken:
	}
	if err := db.failure(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("use state %s: %w", db.opt.Path, err)
	}
	return nil
}

// work is Run, until ctx is done or the file has failed.
func (db *DB) work(ctx context.Context, check func() (again bool)) {
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	armed, seen := true, db.activity.Load()
	for {
		select {
		case <-ctx.Done():
			return
		case <-db.broken:
			return
		case <-db.bell:
			if !armed {
				timer.Reset(time.Second)
				armed = true
			}
		case <-timer.C:
			now := db.activity.Load()
			quiet := now == seen
			seen = now
			db.maintain(ctx, quiet)
			armed = check() || !quiet
			if armed {
				timer.Reset(time.Second)
			}
		}
	}
}

// maintain does the work that is due. quiet: nothing happened for a second.
func (db *DB) maintain(ctx context.Context, quiet bool) {
	db.checkPlace(ctx)
	if db.compactionDue() {
		if err := db.Compact(ctx); err != nil {
			db.log.Warn("compaction failed", "path", db.opt.Path, "error", err)
		}
	}
	if quiet {
		db.givePagesBack()
	}
}

// Wake tells Run that something happened. It does not block and carries no information: Run checks for itself.
func (db *DB) Wake() {
	db.activity.Add(1)
	select {
	case db.bell <- struct{}{}:
	default:
	}
}

// fault makes the named step fail when a test wants it to.
func (db *DB) fault(step string) error {
	if db.opt.Fault == nil {
		return nil
	}
	if err := db.opt.Fault(step); err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	return nil
}

// Schema is the layout of the file.
type Schema struct {
	Buckets []string // BucketMeta need not be among them
	Version uint32   // above 0. A file of another version is not opened.
}

// BucketMeta is the bucket that every file has:
//
//	"schema"          → u32                   version of the layout; the sum of rows is its checksum
//	"epoch"           → sealed 32 hex digits  random name of the file
//	"persisted/" name → sealed bytes          PutMeta
//	"rows"            → sealed u64            sum of all rows and sequences; a later version must not change its layout
const BucketMeta = "meta"

const (
	keySchema  = "schema"
	keyEpoch   = "epoch"
	prefixMeta = "persisted/"
)

// checkSchema returns ErrNewer or ErrEarlier for a file of another version.
func checkSchema(tx *bbolt.Tx, want uint32) error {
	meta := tx.Bucket([]byte(BucketMeta))
	if meta == nil {
		return fmt.Errorf("%w: bucket %s is missing", ErrCorrupt, BucketMeta)
	}
	v := meta.Get([]byte(keySchema))
	if len(v) != 4 {
		return fmt.Errorf("%w: no schema version", ErrCorrupt)
	}
	have := binary.BigEndian.Uint32(v)
	switch {
	case have > want:
		return fmt.Errorf("%w: it has schema %d, this ccship knows up to %d; "+
			"run the newer ccship, or use another state directory", ErrNewer, have, want)
	case have == 0:
		return fmt.Errorf("%w: schema version 0", ErrCorrupt)
	case have < want:
		return fmt.Errorf("%w: it has schema %d, this ccship has %d; "+
			"move the file away to start with a new state: everything is then sent anew", ErrEarlier, have, want)
	case meta.Get([]byte(keySum)) == nil:
		return fmt.Errorf("%w: the sum of its rows is missing", ErrCorrupt)
	}
	return nil
}
