package server

import (
	"context"
	"errors"
	"time"
)

// ErrCold means that what was asked for is in cold storage, which can't be reached now. What is in the database is
// answered, and lines are stored.
var ErrCold = errors.New("cold storage can't be reached now")

// Cooler moves what is old out of the database, to a location that costs less. Reading gives the same before and after,
// and when it is interrupted. Several processes may use it at once.
type Cooler interface {
	// Cool moves blocks of streams that got no lines since before, and files that came before it, and removes what is not
	// used any more from the location. Without a location it does nothing.
	Cool(ctx context.Context, before time.Time) (Cooled, error)
	// Return brings blocks of streams back into the database that got their last lines from since on and before until. It
	// tells how far it is.
	Return(ctx context.Context, since, until time.Time, told func(Returned)) (Returned, error)
	// Sweep only removes what is not used any more.
	Sweep(ctx context.Context) error
	// Cold says what is there.
	Cold(ctx context.Context) (Cold, error)
	// Warm says what is still in the database. It looks at every transcript.
	Warm(ctx context.Context) (Warm, error)
}

// Cooled counts what was moved.
type Cooled struct{ Objects, Bytes int64 }

// Returned counts what was brought back. Damaged are objects that are lost, or have other bytes: they stay.
type Returned struct{ Objects, Bytes, Damaged int64 }

// Cold is what a store keeps outside of its database.
type Cold struct {
	Place   string // a URL; "" if there is none
	Objects int64
	Bytes   int64
	Pending int64 // objects that are being written, or are still to be removed
	Err     error // of the last use of the location; nil: it answers
}

// Warm is what a store still has in its database.
type Warm struct {
	Streams int64     // transcripts of which something could be moved to cold storage
	Since   time.Time // when the one that rests longest got its last lines; zero: there is none
	Lines   int64     // that are not packed yet
	Oldest  time.Time // when the first of them came; zero: there is none
}
