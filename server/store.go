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
	Masker
	Sealer
	Summer
	Cooler
	Watcher
	Accounts
	Keyring
	Quotas
	Marks
	ShareLinks
	SavedViews
	Retention
}

// Summer keeps sums of what is stored.
type Summer interface {
	// SumUp adds some recent changes to the stored sums, and reports whether there are more. Readers add what is missing,
	// so sums are always right; SumUp makes them cheap.
	SumUp(ctx context.Context) (more bool, err error)
}

// Ingester stores lines durably. Safe for concurrent use.
type Ingester interface {
	// Put stores a batch and returns nil once it is durable; then it has set the Receipt of the batch's head. Repeating
	// it changes nothing. After an error nothing of the batch is stored; ErrForgotten says that it never will be. A
	// *LedgerError or a *StreamError refuses a batch with a Writer that does not fit what is stored, a *QuotaError one
	// that exceeds a limit of its owner, lines that are stored already counted too. From a client
	// without one, other bytes for a stored line replace it, and the store keeps the replaced bytes.
	Put(ctx context.Context, b *Batch) error
}

// Sealer packs lines that lie in rows of their own, as those do that came last. Several processes may do it at once.
type Sealer interface {
	// Seal packs the lines of all streams that got none since before, and of others what fills blocks. It returns how many
	// blocks it made. Reading gives the same lines before and after, and when it is interrupted.
	Seal(ctx context.Context, before time.Time) (blocks int64, err error)
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
	// The bytes of a line are valid until yield returns. A *DamagedError names the next lines when they can't be read.
	Lines(ctx context.Context, s Span, yield func(Line) error) error
	// Replaced calls yield with the bytes that later ones of the same line replaced, in the order of lines and then of
	// their replacement, like Lines. Only clients that keep no ledger replace lines.
	Replaced(ctx context.Context, s Span, yield func(l Line, at time.Time) error) error
	// Retired calls yield with each run that has lines of a span which retention removed, ascending. With hashes, it has
	// the hash of each line.
	Retired(ctx context.Context, s Span, hashes bool, yield func(*RetiredRun) error) error
	// Folded returns the stored state of the session.Fold of the chosen epoch's newest view, and up to where it goes:
	// usually some lines less than is derived. The Position is zero when nothing is, or only of another epoch.
	Folded(ctx context.Context) (Position, []byte, error)
	// CopiedFrom returns the id of the owner's session that the stream's history was copied from; "" when it was not.
	CopiedFrom(ctx context.Context) (string, error)
	// Masked lists the lines of the chosen epoch that the server masked by itself.
	Masked(ctx context.Context) ([]MaskedLine, error)
	Close() error
}

// Span is the lines of one generation from From up to before To. If Most is not 0, of a line that has more bytes only
// the beginning need be read, up to LongHead, so that a huge line takes little memory. If Skip is not 0 either, as many
// bytes of such a line are left out, and those behind them are read.
type Span struct{ Generation, From, To, Most, Skip int64 }

// LongHead is how much is read of a line that is too long for its reader, in bytes.
const LongHead = 2 << 20

// Part returns how many bytes are to be read of a line of some size, and how many are left out before them.
func (s Span) Part(size int64) (skip, n int64) {
	if s.Most == 0 || size <= s.Most {
		return 0, size
	}
	skip = min(s.Skip, size)
	return skip, min(s.Most, LongHead, size-skip)
}

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
