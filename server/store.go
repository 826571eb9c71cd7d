package server

import (
	"context"
	"time"
)

// Ingester takes lines durably. Safe for concurrent use.
type Ingester interface {
	// Put stores the batch and returns nil once it is durable. Repeating it changes nothing; other bytes for a line
	// that is stored replace it, and the replaced bytes are kept aside. An error means that nothing was stored:
	// ErrForgotten that it never will be.
	Put(ctx context.Context, b *Batch) error
}

// Catalog finds what is stored, whosesoever it is. Safe for concurrent use.
type Catalog interface {
	// Sessions lists streams. ErrBadPage for an After that no listing gave.
	Sessions(ctx context.Context, p Page) (Sessions, error)
	// Open pins the state of one stream for reading. ErrNotFound when there is none. The caller closes it, soon: a
	// store may have to keep old pages for as long.
	Open(ctx context.Context, ref Ref) (Snapshot, error)
}

// Snapshot is one stream at one moment: what is stored later does not show. For one goroutine at a time.
type Snapshot interface {
	Session() Session
	Epochs() []Epoch           // newest first
	Generations() []Generation // of the chosen epoch, ascending
	// Count answers how many lines of a span are stored, oversize notes apart.
	Count(ctx context.Context, s Span) (lines, oversize int64, err error)
	// Lines calls yield with every stored line of a span, ascending, until it returns an error, which Lines returns.
	// The line's bytes are valid until yield returns.
	Lines(ctx context.Context, s Span, yield func(Line) error) error
	Close() error
}

// Span is the lines of one generation from From to before To.
type Span struct{ Generation, From, To int64 }

// Keyring knows keys by their hash.
type Keyring interface {
	// FindKey answers ErrNotFound for a hash nobody has. A revoked key is found.
	FindKey(ctx context.Context, hash [32]byte) (Key, error)
	TouchKey(ctx context.Context, id int64, at time.Time) error
}

// Store is all that the server needs kept.
type Store interface {
	Ingester
	PaperIngester
	Catalog
	Library
	Deriving
	Watching
	Accounts
	Keyring
}
