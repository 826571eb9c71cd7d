// Package state keeps what the daemon must not forget: the cursor of every transcript, and the outbox. Both live in
// one file, so that the one durable move of a transcript (Step) is one transaction: the cursor goes on and the lines
// enter the outbox, together or not at all.
//
// It implements tail.Cursors, outbox.Queue and outbox.Memory. It knows rows, caps and disks; it does not know what a
// line says, who reads files or who talks to servers, nor how the file survives a crash: that is state/kv.
package state

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

var (
	// ErrNewer says that the file was written by a newer ccship. It is left as it is.
	ErrNewer = kv.ErrNewer
	// ErrLocked says that another process has the file open.
	ErrLocked = kv.ErrLocked
	// ErrCorrupt says that the file is damaged. Open sets such a file aside; found later, it ends Run, and the next
	// Open sets the file aside.
	ErrCorrupt = kv.ErrCorrupt
	// ErrClosed is answered after Close.
	ErrClosed = kv.ErrClosed
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

	maxSize       int            // of the file, for tests: stands for a full disk
	understoodCap int64          // for tests; 0: as in understood.go
	migrations    []kv.Migration // for tests; nil: those of schema.go
}

// Advice is something a person should know about the state, with what to do about it.
type Advice struct {
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

	opt    Options
	log    *slog.Logger
	file   *kv.DB
	memory *memory
	index  index
	room   room

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

// Open opens the state at opt.Path, and makes it when there is none. It waits at most three seconds for another process
// that has it open (ErrLocked), unless told not to. A damaged file is set aside as <path>.corrupt-<time>, and the state
// begins anew, in a new epoch; Notices says so. A file of a newer ccship is not touched (ErrNewer). Nothing runs until
// Run.
func Open(ctx context.Context, opt Options) (*DB, error) {
	opt = opt.withDefaults()
	db := &DB{opt: opt, log: opt.Log, index: newIndex()}
	db.memory = &memory{db}
	db.room.limits = Limits{opt.Cap, opt.HeadRoom, opt.CompactAbove}
	file, err := kv.Open(ctx, kv.Options{
		Path: opt.Path, Schema: kv.Schema{Buckets: bucketNames(), Migrations: opt.migrations}, Memory: []kv.Memory{db.memory},
		CompactAbove: opt.CompactAbove, Drained: db.drained, NoWait: opt.NoWait, Log: opt.Log, Fault: opt.Fault,
		FreeDisk: opt.FreeDisk, MaxSize: opt.maxSize,
	})
	if err != nil {
		return nil, err
	}
	db.file = file
	return db, nil
}

// Epoch is the random name of this state file; it changes when the state is lost.
func (db *DB) Epoch() string { return db.file.Epoch() }

// Advice are what Open found that a person should know.
func (db *DB) Advice() []Advice {
	aside := db.file.SetAside()
	if aside == "" {
		return nil
	}
	return []Advice{{
		Kind: "state_corrupt",
		Text: fmt.Sprintf("The state file was damaged. It was set aside as %s, and every transcript is sent again.", aside),
		Hint: "Check the disk. The file set aside can be removed when nothing is missed.",
	}}
}

// Alive returns nil once a transaction could be run, behind those that wait. Nothing is written. It may be called
// while others use the state; an error says why it cannot be used, or that ctx ended first.
func (db *DB) Alive(ctx context.Context) error { return db.file.Alive(ctx) }

// Scrub has Run compact the file soon, so that nothing of what was removed is left in its empty pages. A file with much
// more in use keeps them until it has become smaller: commits wait for a compaction. Not remembered over a restart.
func (db *DB) Scrub() { db.file.Scrub() }

// FileSize is the size of the state file in bytes, 0 when it cannot be asked.
func (db *DB) FileSize() int64 { return db.file.FileSize() }

// Close ends all use of the file. Transactions under way are finished first.
func (db *DB) Close() error { return db.file.Close() }

// Run does the background work until ctx is done: it compacts a mostly empty file, gives touched pages back, and
// tells RoomChanged when time or the disk brought room back. It sleeps while nothing happens. An error, ErrCorrupt
// among them, means that the state can no longer be used.
func (db *DB) Run(ctx context.Context) error {
	return db.file.Run(ctx, func() (again bool) {
		db.roomCheck()
		return db.roomBlocked()
	})
}

// Remember keeps a few bytes of the owner's under a name, durably; nil forgets them.
func (db *DB) Remember(ctx context.Context, name string, value []byte) error {
	return db.file.PutMeta(ctx, name, value)
}

// Remembered is what was kept under a name, nil when nothing is.
func (db *DB) Remembered(ctx context.Context, name string) ([]byte, error) {
	return db.file.Meta(ctx, name)
}

// Check reads the structure of the state file at path, also while a daemon uses it: nothing is locked, and nobody waits.
// ErrCorrupt: it does not hold together, or its daemon has found that out. fs.ErrNotExist: there is none. What ctx ends
// with: it is too large, or changes too fast, to be read in that time. The values in it are not looked at.
func Check(ctx context.Context, path string) error { return kv.Check(ctx, path) }
