// Package state keeps what must survive a restart: the cursor of every transcript, the batches that wait for a server,
// and the dead letters. All of it is in one file, so that DB.Commit moves a transcript's cursor and queues its lines in
// one transaction: together or not at all.
//
// DB.Files implements tail.Cursors; DB.Outbox implements outbox.Queue and outbox.Memory. The package knows rows, limits
// and disks. It does not know what a line means, who reads files or who talks to servers. Package state/kv makes the
// file survive a crash; state/projection keeps what is known of sessions, in the same file.
package state

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

// Errors of package kv, which describes them.
var (
	ErrNewer   = kv.ErrNewer
	ErrEarlier = kv.ErrEarlier
	ErrLocked  = kv.ErrLocked
	ErrCorrupt = kv.ErrCorrupt
	ErrClosed  = kv.ErrClosed
)

// ErrUnknownFile means that the state has no row for a file.
var ErrUnknownFile = errors.New("file is not known")

// Options describe where the state file is and how large it may get. Only Path is required.
type Options struct {
	Path string
	// Cap limits the bytes of the rows in the outbox and among the dead letters, as stored; default 2 GiB. The last
	// 10 % are reserved for files that are being written now.
	Cap int64
	// HeadRoom is how many bytes of the disk must stay free; default 256 MiB, on small disks 2 % of the disk.
	HeadRoom int64
	// ReadAhead limits the outbox during an import while the server keeps up; default 32 MiB. Reading further ahead
	// only makes the file larger.
	ReadAhead int64
	// CompactAbove is the file size in bytes above which a mostly empty file is compacted; default 64 MiB.
	CompactAbove int64
	// NoWait returns ErrLocked at once when another process has the file open.
	NoWait bool
	Log    *slog.Logger // nil: discard
	// Dependents keep rows of their own in the file; may be nil.
	Dependents Dependents
	// Fault is called before every named step of a write; an error makes that step fail. For tests; nil: no step fails.
	Fault func(step string) error
	// FreeDisk returns the free and total bytes of the disk that dir is on. nil: the system is asked.
	FreeDisk func(dir string) (free, total uint64, err error)

	maxSize int // of the file, for tests: it stands for a full disk
}

// Advice is something a person should know about the state, with what to do about it.
type Advice struct {
	Kind, Text, Hint string
}

// Listener gets notified of what happened. The methods run while the state is locked for writing, after the disk has
// the transaction: they must not block, and must not call the DB.
type Listener interface {
	// RowsQueued reports that rows for a destination, named by its normalised URL, entered the outbox.
	RowsQueued(dest string)
	// CapacityReturned reports that HasCapacity would now return true where it last returned false.
	CapacityReturned()
}

// DB is the open state. Safe for concurrent use.
type DB struct {
	*kv.DB // the file; rows of this package are written only through its own methods

	Files       *Files
	Outbox      *Outbox
	DeadLetters *DeadLetters
	// Listener may be nil. Set it before Run and the first Commit.
	Listener Listener

	opt        Options
	log        *slog.Logger
	memory     *memory
	index      index
	capacity   capacity
	dependents Dependents // never nil
}

var (
	_ tail.Cursors  = (*Files)(nil)
	_ outbox.Queue  = (*Outbox)(nil)
	_ outbox.Memory = (*Outbox)(nil)
)

func (o Options) withDefaults() Options {
	if o.Cap <= 0 {
		o.Cap = 2 << 30
	}
	if o.ReadAhead <= 0 {
		o.ReadAhead = 32 << 20
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Open opens the state at opt.Path, or creates it. It waits at most three seconds for another process that has the file
// open (ErrLocked), unless it must not wait. A damaged file is renamed to <path>.corrupt-<time>, and an empty state
// with a new epoch replaces it; Advice reports that. A file of a newer ccship is not touched (ErrNewer), nor one of an
// earlier layout (ErrEarlier). Open starts nothing in the background: Run does.
func Open(ctx context.Context, opt Options) (*DB, error) {
	opt = opt.withDefaults()
	db := &DB{opt: opt, log: opt.Log, index: newIndex(), dependents: opt.Dependents}
	db.Files, db.Outbox, db.DeadLetters = &Files{db}, &Outbox{db}, &DeadLetters{db}
	db.memory = &memory{db}
	db.capacity.limits = Limits{opt.Cap, opt.HeadRoom, opt.CompactAbove}
	owners := []kv.Memory{db.memory}
	if db.dependents == nil {
		db.dependents = noDependents{}
	} else {
		owners = append(owners, db.dependents)
	}
	file, err := kv.Open(ctx, kv.Options{
		Path: opt.Path, Schema: kv.Schema{Buckets: bucketNames(), Version: schemaVersion}, Memory: owners,
		CompactAbove: opt.CompactAbove, Drained: db.index.drained, NoWait: opt.NoWait, Log: opt.Log, Fault: opt.Fault,
		FreeDisk: opt.FreeDisk, MaxSize: opt.maxSize,
	})
	if err != nil {
		return nil, err
	}
	db.DB = file
	return db, nil
}

// Advice returns what Open found that a person should know.
func (db *DB) Advice() []Advice {
	aside := db.SetAside()
	if aside == "" {
		return nil
	}
	return []Advice{{
		Kind: "state_corrupt",
		Text: fmt.Sprintf("The state file was damaged. It was set aside as %s, and every transcript is sent again.", aside),
		Hint: "Check the disk. You can delete the file that was set aside once nothing is missing.",
	}}
}

// Run does the background work until ctx is done: it compacts a mostly empty file, returns memory pages to the system,
// and calls Listener.CapacityReturned when time or the disk brought capacity back. It sleeps while nothing happens. An
// error, ErrCorrupt among them, means that the state can no longer be used.
func (db *DB) Run(ctx context.Context) error {
	return db.DB.Run(ctx, func() (again bool) {
		db.recheckCapacity()
		return db.capacityBlocked()
	})
}

// Check reads the structure of the state file at path, also while a daemon uses it: it takes no lock.
// ErrCorrupt: the structure is broken, or the daemon has found damage. fs.ErrNotExist: there is no file. The error of
// ctx: the file is too large, or changes too fast, to be read in that time. Check does not read the values.
func Check(ctx context.Context, path string) error { return kv.Check(ctx, path) }
