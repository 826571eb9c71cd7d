// Package state keeps what the daemon must not forget: the cursor of every transcript, and the outbox. Both live in
// one bbolt file, so that the one durable move of a transcript (Step) is one transaction: the cursor goes on and the
// lines enter the outbox, together or not at all.
//
// It implements tail.Cursors, outbox.Queue and outbox.Memory. It knows rows, caps and disks; it does not know what a
// line says, who reads files or who talks to servers.
package state

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/tail"
)

var (
	// ErrNewer says that the file was written by a newer ccship. It is left as it is.
	ErrNewer = errors.New("state is from a newer ccship")
	// ErrLocked says that another process has the file open.
	ErrLocked = errors.New("state is in use by another process")
	// ErrCorrupt says that the file is damaged. Open sets such a file aside; found later, it ends Run, and the next
	// Open sets the file aside.
	ErrCorrupt = errors.New("state is damaged")
	// ErrClosed is answered after Close.
	ErrClosed = errors.New("state is closed")
	// ErrUnknownFile says that nothing is remembered of a file.
	ErrUnknownFile = errors.New("file is not known")
)

// Options say where the state lives and how large it may get. Only Path is required.
type Options struct {
	Path string
	// Cap bounds the bytes of the rows in outbox and dead letters, as they are stored; default 2 GiB. Its last 10 %
	// are kept for live files.
	Cap int64
	// HeadRoom is how many bytes of the disk stay free; default 256 MiB, on small disks 2 % of it.
	HeadRoom int64
	// ReadAhead bounds the outbox during an import while the server keeps up; default 64 MiB. Reading further ahead
	// would only grow the file.
	ReadAhead int64
	// CompactAbove is the file size in bytes above which a mostly empty file is compacted; default 64 MiB.
	CompactAbove int64
	// NoWait answers ErrLocked at once when another process has the file open.
	NoWait bool
	Log    *slog.Logger // nil: discard
	// Fault is asked before every named step of a write; an error makes that step fail. For tests; nil: none fails.
	Fault func(step string) error
	// FreeDisk answers the free and total bytes of the disk that dir is on. nil: the OS is asked.
	FreeDisk func(dir string) (free, total uint64, err error)

	maxSize       int         // of the file, for tests: stands for a full disk
	understoodCap int64       // for tests; 0: as in understood.go
	migrations    []migration // for tests; nil: those of schema.go
}

// Notice is something a person should know about the state, with what to do about it.
type Notice struct {
	Kind, Text, Hint string
}

// DB is the open state. Safe for concurrent use.
type DB struct {
	// Notify is told, without blocking it, that rows for a destination arrived. Set before Run and the first Commit.
	Notify func(dest string)
	// Missed is told, without blocking it, of a document whose newest version was settled without having been sent: it
	// counts as not queued from then on. Set before Run.
	Missed func(MissedDocument)
	// RoomChanged is told that Room came back. Set before Run and the first Commit.
	RoomChanged func()

	opt     Options
	log     *slog.Logger
	epoch   string
	notices []Notice
	lock    *fileLock

	handle sync.RWMutex // held for reading around every transaction, for writing while the file is swapped
	bolt   *bbolt.DB    // guarded by handle; nil after Close or when reopening went wrong
	closed bool         // guarded by handle

	group  committer
	index  index
	room   room
	bell   chan struct{} // something happened: Run looks in a second
	broken chan struct{} // closed once the file proved damaged
	damage sync.Once

	activity atomic.Int64 // what happened so far, counted by ring
	empty    atomic.Int64 // bytes of the file's empty pages, after the last commit
	touched  atomic.Int64 // bytes of rows touched since pages were given back
	scrubs   atomic.Bool  // Scrub was called

	packers sync.Pool // *flate.Writer
}

var (
	_ tail.Cursors  = (*DB)(nil)
	_ outbox.Queue  = (*DB)(nil)
	_ outbox.Memory = (*DB)(nil)
)

func (o Options) withDefaults() Options {
	if o.Cap <= 0 {
		o.Cap = 2 << 30
	}
	if o.ReadAhead <= 0 {
		o.ReadAhead = 64 << 20
	}
	if o.CompactAbove <= 0 {
		o.CompactAbove = 64 << 20
	}
	if o.FreeDisk == nil {
		o.FreeDisk = freeDisk
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.understoodCap <= 0 {
		o.understoodCap = understoodCap
	}
	if o.migrations == nil {
		o.migrations = migrations()
	}
	return o
}

// Epoch is the random name of this state file; it changes when the state is lost.
func (db *DB) Epoch() string { return db.epoch }

// Notices are what Open found that a person should know.
func (db *DB) Notices() []Notice { return append([]Notice(nil), db.notices...) }

// Close ends all use of the file. Transactions under way are finished first.
func (db *DB) Close() error {
	db.group.write.Lock()
	defer db.group.write.Unlock()
	db.handle.Lock()
	defer db.handle.Unlock()
	if db.closed {
		return nil
	}
	db.closed = true
	var err error
	if db.bolt != nil {
		err = db.bolt.Close()
		db.bolt = nil
	}
	if e := db.lock.release(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("close state: %w", err)
	}
	return nil
}

// Run does the background work until ctx is done: it compacts a mostly empty file, gives touched pages back, and
// tells RoomChanged when time or the disk brought room back. It sleeps while nothing happens. An error, ErrCorrupt
// among them, means that the state can no longer be used.
func (db *DB) Run(ctx context.Context) error {
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	armed, seen := true, db.activity.Load()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-db.broken:
			return fmt.Errorf("use state %s: %w", db.opt.Path, ErrCorrupt)
		case <-db.bell:
			if !armed {
				timer.Reset(time.Second)
				armed = true
			}
		case <-timer.C:
			now := db.activity.Load()
			quiet := now == seen
			seen = now
			armed = db.tend(ctx, quiet) || !quiet
			if armed {
				timer.Reset(time.Second)
			}
		}
	}
}

// tend does what is due, and says whether it must be called again in a second.
func (db *DB) tend(ctx context.Context, quiet bool) bool {
	if db.compactionDue() {
		if err := db.compact(ctx); err != nil {
			db.log.Warn("compaction failed", "path", db.opt.Path, "error", err)
		}
	}
	if quiet {
		db.givePagesBack()
	}
	db.roomCheck()
	return db.roomBlocked()
}

// ring tells Run that something happened.
func (db *DB) ring() {
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
