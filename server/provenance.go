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
	// KeepCommits keeps shares until what is derived of their stream is removed, of each stream those of the newest
	// MaxCommits commits. Those of streams that are not stored are left out.
	KeepCommits(ctx context.Context, shares []CommitShare) error
	// Commits lists the shares of a stream, the newest commit first, if a scope sees it.
	Commits(ctx context.Context, scope Scope, owner, stream int64) ([]CommitShare, error)
}

// MaxCommits is how many commits of a stream are kept.
const MaxCommits = 100

// CommitShare is how much of a commit a session wrote. It is what that session and the commit tell: whatever other
// sessions wrote of the same lines does not count, because not everybody who may read this one may read those.
type CommitShare struct {
	Owner  int64     `json:"-"`
	Stream int64     `json:"-"`
	Commit string    `json:"commit"` // its hash
	At     time.Time `json:"at"`     // of the commit
	Added  int64     `json:"added"`  // lines of the commit that are not blank
	Lines  int64     `json:"lines"`  // of them, the session's
}

// EditQuery chooses edits.
type EditQuery struct {
	Name    string    // of the files, without folders
	To      time.Time // not later
	Limit   int
	Project string // project_hash, name or repository; "": of any
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
