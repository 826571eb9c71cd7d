// Package server holds the words and the contracts of the reference server: what a stream, a generation and a view are,
// who may see what, and what a store must do. It knows neither HTTP (server/api, server/web) nor how bytes are kept
// (server/store).
//
// Every key belongs to a user. An owner sees and manages everything; a member sees its own sessions and those shared
// with it; a viewer sees only what is shared with it. What a user may not see does not exist for that user.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/protocol"
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

// A ledger counts the writes that a store took from one machine of one user. Client and store both keep the count, so
// each notices when the other, or it itself, went back in time: a database restored from a backup, a state file put
// back, a clone of a machine. See docs/internals/adr/0041-ledger.md.

// Writer is what a request says about the daemon that sends it. The zero Writer is a client that keeps no ledger:
// nothing is checked for it.
type Writer struct {
	// Incarnation is random, drawn each time the client's state file is opened.
	Incarnation string
	// Store is the id of the store that the client knows; "" before its first answer.
	Store string
	// Count is the last count of the ledger that the client knows.
	Count int64
	// Token is what the store drew for that write; "": the client does not know.
	Token string
}

// Receipt is the ledger after a request.
type Receipt struct {
	Store string
	Count int64
	Token string // drawn for the last write: two histories of a store may agree in its count, not in this
}

// Ledgers reads and compares ledgers. Safe for concurrent use.
type Ledgers interface {
	// StoreID returns the random id of this store. It stays the same until the store is restored from a copy.
	StoreID() string
	// Ledger returns the ledger of a user's machine, with the streams that changed after count since, in the order of
	// their changes, at most limit. A machine that never wrote has a ledger of count 0.
	Ledger(ctx context.Context, owner int64, machine string, since int64, limit int) (protocol.WriteLedger, error)
}

// LedgerError refuses a write whose writer and store do not agree on what came before. Nothing of it is stored.
type LedgerError struct {
	Code    string // protocol.CodeOtherStore, CodeStoreBehind, CodeWriterBehind or CodeWriterReplaced
	Receipt Receipt
}

func (e *LedgerError) Error() string {
	return fmt.Sprintf("%s: store %s is at write %d of this machine", e.Code, e.Receipt.Store, e.Receipt.Count)
}

// StreamError refuses a batch that would hide or replace what the store has acknowledged. Nothing of it is stored.
type StreamError struct {
	Code       string // protocol.CodeOtherEpoch or CodeOtherBytes
	Epoch      string // in front
	Generation int64  // the newest of that epoch
	Line       int64  // with other_bytes: the first line that differs
}

func (e *StreamError) Error() string {
	return fmt.Sprintf("%s: epoch %s is at generation %d (line %d)", e.Code, e.Epoch, e.Generation, e.Line)
}

// Masker replaces secrets in what is stored by tokens of the same length. It is the only way to change stored bytes,
// and it changes nothing else. Safe for concurrent use.
type Masker interface {
	// Mask makes all of a masking durable in one step, or nothing. What is derived from the stream is removed, so that it
	// is derived again. What is masked already, or not stored with the expected bytes, stays as it is: repeating a masking
	// changes nothing. ErrNoToken when something other than secrets would change, ErrNotFound for a stream that does not
	// exist.
	Mask(ctx context.Context, m *Masking) (protocol.Masked, error)
	// Maskings lists what was masked, latest first; for a user only its own sessions.
	Maskings(ctx context.Context, scope Scope) ([]MaskedSession, error)
	// Scrub overwrites what secrets may have left behind in files of the database, if something was masked since the last
	// time. It calls progress now and then.
	Scrub(ctx context.Context, progress func(done, total int64)) error
}

// ErrNoToken refuses a masking that would change more than secrets.
var ErrNoToken = errors.New("only tokens may replace stored bytes")

// Masking is what to mask in one stream.
type Masking struct {
	Stream int64
	// By is the user who asks: the daemon of that user masks what it sends in the same way. 0: the server masks by itself.
	// Lines that it masks are listed, and the same lines are stored with these tokens when they come again.
	By          int64
	At          time.Time
	Lines       []protocol.LineMask
	Checkpoints []protocol.CheckpointMask
	Files       []protocol.FileMask
}

// MaskedSession is what was masked of one stream, by one user.
type MaskedSession struct {
	Owner     int64           `json:"-"`
	SessionID string          `json:"session_id"`
	Machine   string          `json:"machine"`
	By        int64           `json:"-"`  // user; 0: the server
	At        time.Time       `json:"at"` // the last time
	Masked    protocol.Masked `json:"-"`
}

// MaskedLine is a line that the server masked by itself.
type MaskedLine struct{ Generation, Line int64 }

// UnavailableAfter is for how many seconds a client should wait when Unavailable: a database that fails over takes
// about so long.
const UnavailableAfter = 5

// ErrNoDatabase means that a database's file was removed or replaced while it was open.
var ErrNoDatabase = errors.New("the database's file was removed or replaced")

// postgresError and sqliteError are what a database says.
type (
	postgresError interface {
		error
		SQLState() string
	}
	sqliteError interface {
		error
		Code() int
	}
)

// Unavailable says whether err of a store means that the database can't be reached now, or has so much to do that it
// gave up: later the same may succeed.
func Unavailable(err error) bool {
	if pg, ok := errors.AsType[postgresError](err); ok {
		return passes(pg.SQLState())
	}
	if lite, ok := errors.AsType[sqliteError](err); ok {
		const busy, locked, cannotOpen = 5, 6, 14
		return slices.Contains([]int{busy, locked, cannotOpen}, lite.Code()&0xff)
	}
	var unsent interface {
		error
		SafeToRetry() bool
	}
	var network net.Error
	return errors.Is(err, ErrNoDatabase) || errors.As(err, &unsent) && unsent.SafeToRetry() || errors.As(err, &network) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, context.DeadlineExceeded)
}

// DiskFull says whether err of a store means that the database has no space left.
func DiskFull(err error) bool {
	const full = 13
	pg, isPostgres := errors.AsType[postgresError](err)
	lite, isSQLite := errors.AsType[sqliteError](err)
	return isPostgres && pg.SQLState() == "53100" || isSQLite && lite.Code()&0xff == full
}

// passes says whether an error of PostgreSQL passes by itself.
func passes(state string) bool {
	return strings.HasPrefix(state, "08") || strings.HasPrefix(state, "57P") || slices.Contains([]string{
		"40001", "40P01", // serialization, deadlock
		"25006",          // a primary became a standby
		"53300",          // too many connections
		"55P03", "57014", // timed out at a lock, or in all
	}, state)
}
