package server

import (
	"context"
	"time"

	"github.com/ccship/ccship/transcript/provenance"
)

// Provenance finds what sessions wrote to files.
type Provenance interface {
	// EditsOf lists the edits of files that sessions did, the newest first, that a scope sees; of all generations.
	EditsOf(ctx context.Context, scope Scope, q EditQuery) ([]WrittenEdit, error)
}

// EditQuery chooses edits.
type EditQuery struct {
	Name  string    // of the files, without folders
	To    time.Time // not later
	Limit int
	// Sums are the lines that are looked for. Of others an edit shows only how many there are: the store hashes what it is
	// asked for with its own key.
	Sums []provenance.Sum
}

// WrittenEdit is an edit and the stream that it is in.
type WrittenEdit struct {
	provenance.Edit
	Stream, Owner              int64
	SessionID, Parent, Machine string
	ProjectHash, Title         string
	Copy                       bool // the stream is a copy of another session
}
