package server

import "context"

// Moments lists what happened in sessions: the prompts, compactions, errors and so on of their timelines.
type Moments interface {
	// Moments lists moments of a stream's newest view in the order of their lines, or backwards. Who may see the stream
	// is the caller's to check.
	Moments(ctx context.Context, q MomentQuery) ([]Moment, error)
}

// Moment is one entry of a stream's timeline. Line and Part identify it.
type Moment struct {
	Line int64
	Part int64  // of several on one line
	Kind string // as package timeline names it; "" in a Derivation: the moment is gone
	Data []byte // as package timeline encodes it
}

// MomentQuery chooses moments of one stream.
type MomentQuery struct {
	Owner    int64 // of the stream
	Stream   int64
	Kinds    []string // none: all
	From, To int64    // lines from From up to before To; To 0: to the end
	// After is the last moment of the page before, whose line is in From; nil for the first page. Backwards there are no
	// further pages.
	After     *Moment
	Backwards bool
	Limit     int
}
