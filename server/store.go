package server

import (
	"context"
	"io"
	"time"
)

// Store is everything that the server needs kept.
type Store interface {
	Ingester
	ArtifactIngester
	Ledgers
	Catalog
	Library
	DerivationStore
	Watcher
	Accounts
	Keyring
}

// Ingester stores lines durably. Safe for concurrent use.
type Ingester interface {
	// Put stores a batch and returns nil once it is durable; then it has set the Receipt of the batch's head. Repeating
	// it changes nothing. After an error nothing of the batch is stored; ErrForgotten says that it never will be. A
	// *LedgerError or a *StreamError refuses a batch with a Writer that does not fit what is stored. From a client
	// without one, other bytes for a stored line replace it, and the store keeps the replaced bytes.
	Put(ctx context.Context, b *Batch) error
}

// Catalog lists and opens streams of all users. Safe for concurrent use.
type Catalog interface {
	// Sessions lists streams. ErrBadPage for an After that no listing returned.
	Sessions(ctx context.Context, p Page) (Sessions, error)
	// Open pins the state of one stream for reading. ErrNotFound when it does not exist. The caller closes the snapshot
	// soon: until then a store may have to keep old pages.
	Open(ctx context.Context, ref Ref) (Snapshot, error)
}

// Snapshot is one stream at one moment: it does not show what is stored later. Used by one goroutine at a time.
type Snapshot interface {
	Session() Session
	Epochs() []Epoch           // newest first
	Generations() []Generation // of the chosen epoch, ascending
	// Count returns how many lines of a span are stored, and how many oversize notes.
	Count(ctx context.Context, s Span) (lines, oversize int64, err error)
	// Lines calls yield with every stored line of a span, ascending, until yield returns an error, which Lines returns.
	// The bytes of a line are valid until yield returns.
	Lines(ctx context.Context, s Span, yield func(Line) error) error
	// Replaced calls yield with the bytes that later ones of the same line replaced, in the order of lines and then of
	// their replacement, like Lines. Only clients that keep no ledger replace lines.
	Replaced(ctx context.Context, s Span, yield func(l Line, at time.Time) error) error
	Close() error
}

// Span is the lines of one generation from From up to before To.
type Span struct{ Generation, From, To int64 }

// Watcher reports what is stored, by whichever server process. It drops changes for a listener that is too slow and
// never blocks: a change says where to look, not what is there.
type Watcher interface {
	Changes(ctx context.Context) (<-chan Change, error) // closed when ctx is done
}

// What a Change is about, other than lines ("").
const (
	AboutCheckpoints = "checkpoints"
	AboutDocuments   = "documents" // and link requests
)

// Change says that lines were stored, or what About names; then it has no lines and no generation.
type Change struct {
	About      string
	Stream     int64
	SessionID  string
	Machine    string
	Owner      int64
	Project    string // project_hash
	Generation int64
	From, To   int64 // lines stored, From up to before To
	At         time.Time
}

// Backuper is a store that can be copied while it is in use. Optional.
type Backuper interface {
	// Backup writes a copy of one moment that Restore takes. It calls progress with the bytes done and the total.
	Backup(ctx context.Context, to io.Writer, progress func(done, total int64)) error
}

// Sizer is a store that knows its sizes. Optional.
type Sizer interface {
	Sizes(ctx context.Context) (Sizes, error)
}

// Sizes is how much a store holds.
type Sizes struct {
	Bytes   int64 // on disk, or of the database
	Streams int64
}
