package server

import (
	"context"
	"io"
	"time"
)

// Papers finds what a daemon sends beside a session's lines: checkpoints, linked documents with all their versions,
// files (blobs), and the wishes of people who read. Safe for concurrent use. Nothing of it is derived from lines.
//
// A ref that names nothing the scope sees is ErrNotFound. A session can have papers before it has lines: a document
// that was linked before the first prompt. Documents, their content and wishes show to others than the session's user
// only when the share says so (Share.Documents); without that they are not there.
type Papers interface {
	// Checkpoints lists the latest made first. ErrBadPage for an After that no listing gave.
	Checkpoints(ctx context.Context, scope Scope, q CheckpointQuery) (Checkpoints, error)
	// Checkpoint answers one by its id; of several the caller's own.
	Checkpoint(ctx context.Context, scope Scope, id string) (Checkpoint, error)
	// Documents lists those linked now and those that were, in the order in which they were linked.
	Documents(ctx context.Context, scope Scope, ref Ref) ([]Document, error)
	// Versions lists a document's, the newest first. ErrNotFound for a path that was never linked.
	Versions(ctx context.Context, scope Scope, ref Ref, path string, p VersionPage) (Versions, error)
	// Content answers version n of a document, 0 for the newest, and its bytes, which are read as they are asked for, a
	// piece at a time, for as long as ctx lasts; there is nothing to close. ErrNotFound for a version that is not
	// there; ErrNoContent for one whose content was never sent (deleted, too large) or has not arrived yet.
	Content(ctx context.Context, scope Scope, ref Ref, path string, n int64) (Version, io.Reader, error)
	// Blobs lists the files of a session that have arrived whole, by name.
	Blobs(ctx context.Context, scope Scope, ref Ref) ([]Blob, error)
	// BlobContent answers a file by its hash (hex), whichever of the scope's sessions it is of, and its bytes, as Content.
	BlobContent(ctx context.Context, scope Scope, sha256 string) (Blob, io.Reader, error)
	// Wish asks the session's daemon to link or unlink a document. Only whose session it is, and owners, may:
	// ErrNotFound for anybody else. The same wish, while it waits, is one; the opposite one takes its place.
	// ErrTooManyWishes when too many wait, ErrNoDaemon for a session that came from none, ErrBadPath for a path that
	// can't be a document's.
	Wish(ctx context.Context, scope Scope, ref Ref, w NewWish) (Wish, error)
	// Wishes lists a session's, the latest first, MaxWishes at most.
	Wishes(ctx context.Context, scope Scope, ref Ref) ([]Wish, error)
}

// Checkpoint is a mark in a session: how full its context was, and what it was about then. See control.Checkpoint for
// where it comes from.
type Checkpoint struct {
	ID          string
	Stream      int64
	SessionID   string // of the stream
	Machine     string
	Owner       int64
	PortID      string
	TokensUsed  int64
	TokenBudget int64  // where the program compacts; 0: unknown
	Trigger     string // auto_80, auto_90, compact, manual, pre_heavy; a newer daemon may have others
	ContextHash string
	Summary     string
	ActiveFiles []string
	Created     time.Time
	Generation  int64 // of the file
	Line        int64 // the mark stands behind this line; -1: unknown
}

// CheckpointQuery chooses checkpoints. The zero value of a field chooses all.
type CheckpointQuery struct {
	Session string // session_id; of every machine
	Stream  int64
	Ref     *Ref   // this session's; ErrNotFound when it is not there
	After   string // Next of the page before
	Limit   int
}

// Checkpoints is one page. Next is "" on the last.
type Checkpoints struct {
	List []Checkpoint
	Next string
}

// Document is a file that belongs to a session for its whole life, as its newest version has it.
type Document struct {
	Path       string // relative to the session's working directory, slashes
	Linked     bool   // false: it was
	AddedAt    time.Time
	AddedBy    string // claude, user, mcp, viewer, other
	UnlinkedAt time.Time
	ChangedAt  time.Time // of the newest version; zero without any
	ChangedBy  string
	Versions   int64 // N of the newest
	Size       int64
	SHA256     string // hex
	Deleted    bool
	TooLarge   bool // its newest content was not sent
	Stored     bool // its newest content is here
	SessionID  string
	Machine    string
	Host       string
}

// Version is what a document was from one moment on. N counts from 1, through all epochs: a daemon that lost its state
// begins with 1 again, and its versions follow those before.
type Version struct {
	N        int64
	At       time.Time // when the daemon saw it
	Change   string    // linked, modified, deleted
	By       string
	Size     int64
	SHA256   string
	TooLarge bool
	Stored   bool  // the content is here
	Line     int64 // of the transcript, whose tool made it; -1: none
	Epoch    string
}

// VersionPage bounds a list of versions: those before Before (0: from the newest on), Limit of them.
type VersionPage struct {
	Before int64
	Limit  int
}

// Versions is one page; Next is the Before of the next, 0 on the last.
type Versions struct {
	List []Version
	Next int64
}

// Blob is a file of a session: a tool's result too long for the transcript ("tool-results/…"), an agent's meta data
// ("subagents/….meta.json"), or the content of a document.
type Blob struct {
	SHA256 string // hex
	Name   string // path below the session's folder, slashes
	Media  string
	Size   int64
	Stored time.Time
	// Stream is whose it is.
	Stream    int64
	SessionID string
	Machine   string
}

// WishState says what became of a wish.
type WishState string

const (
	WishWaits   WishState = "waiting" // the daemon has not answered
	WishDone    WishState = "done"
	WishRefused WishState = "refused"
)

// MaxWishes is how many of a session's wishes are listed, and how many may wait.
const MaxWishes = 100

// NewWish is what somebody asks for.
type NewWish struct {
	Path string
	Link bool  // false: unlink
	By   int64 // user
	At   time.Time
}

// Wish asks a session's daemon to link or unlink a document.
type Wish struct {
	ID        string
	SessionID string
	Machine   string
	Host      string
	Path      string
	Link      bool
	By        int64 // user
	Asked     time.Time
	State     WishState
	Reason    string    // why it was refused
	Answered  time.Time // zero while it waits
}
