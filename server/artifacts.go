package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Artifacts finds what a daemon sends in addition to a session's lines: checkpoints, linked documents with all their
// versions, and blobs; and the link requests of people who read the session. Safe for concurrent use. None of it is
// derived from lines.
//
// A ref that names nothing the scope sees is ErrNotFound. A session can have artifacts before it has lines: a document
// linked before the first prompt. Documents, their content and link requests are visible to users other than the
// session's own only when Share.Documents is set; without it they do not exist.
type Artifacts interface {
	Checkpoints
	Documents
	Blobs
	LinkRequests
}

// Checkpoints finds checkpoints.
type Checkpoints interface {
	// Checkpoints lists checkpoints, latest first. ErrBadPage for an After that no listing returned.
	Checkpoints(ctx context.Context, scope Scope, q CheckpointQuery) (CheckpointPage, error)
	// Checkpoint returns one by its id, of a user (0: the caller's own, else the only user's who has that id in the scope;
	// *AmbiguousError when there are several).
	Checkpoint(ctx context.Context, scope Scope, id string, owner int64) (Checkpoint, error)
}

// Documents finds linked documents.
type Documents interface {
	// Documents lists the documents that are or were linked, in the order of linking.
	Documents(ctx context.Context, scope Scope, ref Ref) ([]Document, error)
	// Versions lists the versions of a document, newest first. ErrNotFound for a path that was never linked.
	Versions(ctx context.Context, scope Scope, ref Ref, path string, p VersionPage) (Versions, error)
	// Content returns version n of a document, 0 for the newest, and a reader of its bytes. The reader fetches them piece
	// by piece, for as long as ctx lasts; there is nothing to close. ErrNotFound for a version that does not exist;
	// ErrNoContent for one whose content was never sent (deleted, too large) or has not arrived yet.
	Content(ctx context.Context, scope Scope, ref Ref, path string, n int64) (Version, io.Reader, error)
}

// Blobs finds files of sessions.
type Blobs interface {
	// Blobs lists the files of a session that have arrived whole, by name.
	Blobs(ctx context.Context, scope Scope, ref Ref) ([]Blob, error)
	// BlobContent returns a file by its hash (hex), from any session of the scope, and its bytes like Content.
	BlobContent(ctx context.Context, scope Scope, sha256 string) (Blob, io.Reader, error)
}

// LinkRequests keeps what people ask daemons to do with documents.
type LinkRequests interface {
	// RequestLink asks the session's daemon to link or unlink a document. Only the session's user and owners may:
	// ErrNotFound for anybody else. A request that repeats a waiting one returns that one; the opposite request replaces
	// it. ErrTooManyLinkRequests when too many wait, ErrNoDaemon for a session that no daemon sends, ErrBadPath for a path
	// that cannot be a document's.
	RequestLink(ctx context.Context, scope Scope, ref Ref, in LinkRequestInput) (LinkRequest, error)
	// LinkRequests lists those of a session, latest first, at most MaxLinkRequests.
	LinkRequests(ctx context.Context, scope Scope, ref Ref) ([]LinkRequest, error)
}

// Checkpoint is a mark in a session: how full its context was, and what it was about then. control.Checkpoint says
// where it comes from.
type Checkpoint struct {
	ID          string    `json:"id"`
	Stream      int64     `json:"-"`
	SessionID   string    `json:"session_id"` // of the stream
	Machine     string    `json:"machine"`
	Owner       int64     `json:"-"`
	PortID      string    `json:"port_id"`
	TokensUsed  int64     `json:"tokens_used"`
	TokenBudget int64     `json:"token_budget"` // at which Claude Code compacts; 0: unknown
	Trigger     string    `json:"trigger_type"` // auto_80, auto_90, compact, manual, pre_heavy, or a newer one
	ContextHash string    `json:"context_hash"`
	Summary     string    `json:"summary"`
	ActiveFiles []string  `json:"active_files"`
	Created     time.Time `json:"created_at"`
	Generation  int64     `json:"generation"` // of the file
	Line        int64     `json:"-"`          // the mark follows this line; -1: unknown
}

// Bytes is how long its texts are.
func (c *Checkpoint) Bytes() int {
	n := len(c.Summary)
	for _, file := range c.ActiveFiles {
		n += len(file)
	}
	return n
}

// CheckpointBytes ends a page of checkpoints, whatever its limit; a page has at least one.
const CheckpointBytes = 2 << 20

// CheckpointQuery chooses checkpoints. The zero value of a field chooses all.
type CheckpointQuery struct {
	Session string // session_id, on every machine
	User    int64
	Stream  int64
	Ref     *Ref   // of this session; ErrNotFound when it does not exist
	After   string // Next of the page before
	Limit   int
}

// CheckpointPage is one page. Next is "" on the last.
type CheckpointPage struct {
	List []Checkpoint
	Next string
}

// Document is a file that belongs to a session for the session's whole life, as its newest version has it.
type Document struct {
	Path       string    `json:"path"`   // relative to the session's working directory, with slashes
	Linked     bool      `json:"linked"` // false: it was linked once
	AddedAt    time.Time `json:"-"`
	AddedBy    string    `json:"added_by"` // claude, user, mcp, viewer, other
	UnlinkedAt time.Time `json:"-"`
	ChangedAt  time.Time `json:"-"` // of the newest version; zero without any
	ChangedBy  string    `json:"changed_by"`
	Versions   int64     `json:"versions"` // N of the newest
	Size       int64     `json:"size"`
	SHA256     string    `json:"sha256"` // hex
	Deleted    bool      `json:"deleted"`
	TooLarge   bool      `json:"too_large"` // its newest content was not sent
	Stored     bool      `json:"stored"`    // its newest content is here
	SessionID  string    `json:"-"`
	Machine    string    `json:"-"`
	Host       string    `json:"-"`
}

// Version is a version of a document. N counts from 1 through all epochs: a daemon that has lost its state starts at 1
// again, and its versions follow the earlier ones.
type Version struct {
	N        int64     `json:"version"`
	At       time.Time `json:"at"`     // when the daemon saw it
	Change   string    `json:"change"` // linked, modified, deleted
	By       string    `json:"by"`
	Size     int64     `json:"size"`
	SHA256   string    `json:"sha256"`
	TooLarge bool      `json:"too_large"`
	Stored   bool      `json:"stored"` // the content is here
	Line     int64     `json:"-"`      // of the transcript, whose tool made the change; -1: none
	Epoch    string    `json:"epoch"`
}

// VersionPage bounds a list of versions: Limit of those before Before (0: from the newest on).
type VersionPage struct {
	Before int64
	Limit  int
}

// Versions is one page. Next is the Before of the next page, 0 on the last.
type Versions struct {
	List []Version
	Next int64
}

// Blob is a file of a session: a tool result too long for the transcript ("tool-results/…"), metadata of an agent
// ("subagents/….meta.json"), or the content of a document.
type Blob struct {
	SHA256 string    `json:"sha256"` // hex
	Name   string    `json:"name"`   // path below the session's folder, with slashes
	Media  string    `json:"media_type"`
	Size   int64     `json:"size"`
	Stored time.Time `json:"stored_at"`
	// The stream that it belongs to.
	Stream    int64  `json:"-"`
	SessionID string `json:"-"`
	Machine   string `json:"-"`
}

// LinkRequestState says what became of a link request.
type LinkRequestState string

const (
	LinkRequestWaiting LinkRequestState = "waiting" // the daemon has not answered
	LinkRequestDone    LinkRequestState = "done"
	LinkRequestRefused LinkRequestState = "refused"
)

// MaxLinkRequests is how many link requests of a session are listed, and how many may wait.
const MaxLinkRequests = 100

// LinkRequestInput is what a user asks for.
type LinkRequestInput struct {
	Path string
	Link bool  // false: unlink
	By   int64 // user
	At   time.Time
}

// LinkRequest asks a session's daemon to link or unlink a document.
type LinkRequest struct {
	ID        string           `json:"id"`
	SessionID string           `json:"-"`
	Machine   string           `json:"machine"`
	Host      string           `json:"host"`
	Path      string           `json:"path"`
	Link      bool             `json:"link"`
	By        int64            `json:"-"` // user
	Created   time.Time        `json:"created_at"`
	State     LinkRequestState `json:"state"`
	Reason    string           `json:"reason"` // why it was refused
	Answered  time.Time        `json:"-"`      // zero while it waits
}

// MaxPath bounds a document's path and a file's name, in bytes.
const MaxPath = 4 << 10

// CheckPath returns ErrBadPath unless p is a clean relative path: no "..", not absolute, no control characters, UTF-8
// and not too long. Other paths name nothing on the server, whatever they name elsewhere.
func CheckPath(p string) error {
	switch {
	case p == "", p == ".", len(p) > MaxPath, !utf8.ValidString(p), strings.HasPrefix(p, "/"), path.Clean(p) != p,
		p == "..", strings.HasPrefix(p, "../"), strings.ContainsFunc(p, unicode.IsControl):
		return fmt.Errorf("%.60q: %w", p, ErrBadPath)
	}
	return nil
}

// conversational are the folders of a session whose files belong to the conversation: they are as visible as its lines.
// Other files are contents of documents.
var conversational = []string{"tool-results/", "subagents/", "workflows/"}

// Conversational reports whether a file with that name belongs to the conversation itself.
func Conversational(name string) bool {
	for _, folder := range conversational {
		if strings.HasPrefix(name, folder) {
			return true
		}
	}
	return false
}

const (
	// MaxBlob is the size of the largest accepted file, in bytes.
	MaxBlob = 256 << 20
	// MaxChunk is how much of a file one request may carry, in bytes.
	MaxChunk = 1 << 20
	// BlobPatience is how long a started upload waits for its next chunk before it is removed.
	BlobPatience = 7 * 24 * time.Hour
	// MaxUploads and MaxUploadBytes bound the unfinished uploads of one user. Beyond them the uploads that have been idle
	// longest start again.
	MaxUploads     = 32
	MaxUploadBytes = 2 << 30
)

// ArtifactIngester stores what daemons send in addition to lines, durably. Safe for concurrent use. Repeating anything
// changes nothing. A *QuotaError refuses what exceeds a limit of the owner. ErrForgotten says that nothing of the
// session is stored any more, and never will be.
type ArtifactIngester interface {
	BlobIngester
	// PutCheckpoints stores all or nothing. Of two checkpoints with one id the one of the newer epoch stands.
	PutCheckpoints(ctx context.Context, b *CheckpointBatch) error
	// PutDocuments stores all or nothing. Every version is kept, in the order of epochs and of the numbers that the daemon
	// gave, not of arrival. Of two versions with one number in one epoch the one that arrived later shows.
	PutDocuments(ctx context.Context, b *DocumentBatch) error
	// PendingLinkRequests lists the link requests that wait for the daemon of a machine, oldest first.
	PendingLinkRequests(ctx context.Context, owner int64, machine string) ([]LinkRequest, error)
}

// BlobIngester stores files that arrive in chunks.
type BlobIngester interface {
	// StartBlob starts or resumes an upload and returns how many bytes are durable. ErrSize when the file is already
	// stored with another size; ErrTooManyUploads when the user has too many unfinished uploads.
	StartBlob(ctx context.Context, u *Upload) (have int64, complete bool, err error)
	// PutBlob stores the bytes from offset on and returns how many are durable then. An *OffsetError says which offset it
	// would have taken. ErrNotFound for an upload that was not started; ErrSize beyond the file's size.
	PutBlob(ctx context.Context, owner int64, sum [32]byte, offset int64, data []byte,
		at time.Time) (have int64, err error)
	// EndBlob checks the hash of the bytes and makes the file visible. An *OffsetError says where to resume: at 0 when the
	// hash differs; then nothing is kept.
	EndBlob(ctx context.Context, u *Upload) error
	// SweepBlobs removes uploads that received nothing since before, and returns how many.
	SweepBlobs(ctx context.Context, before time.Time) (int64, error)
	// AuditBlobs reads every stored file. It calls found for each file with damaged bytes.
	AuditBlobs(ctx context.Context, found func(problem string), progress func(blobs, bytes int64)) error
}

// CheckpointBatch is the checkpoints of one request. From its Head, as in all requests with artifacts, only what names
// and describes the stream counts.
type CheckpointBatch struct {
	Head     Head
	Owner    int64
	Quota    Quota // of the owner
	List     []Checkpoint
	Received time.Time
}

// DocumentBatch is the events of one request.
type DocumentBatch struct {
	Head     Head
	Owner    int64
	Quota    Quota // of the owner
	Events   []DocumentEvent
	Received time.Time
}

// What happens to a document.
const (
	Linked   = "linked" // with its first content
	Unlinked = "unlinked"
	Modified = "modified"
	Deleted  = "deleted"
	Refused  = "refused" // a link request, with a reason
)

// DocumentEvent is something that happened to a document.
type DocumentEvent struct {
	Path        string    `json:"path"`
	Change      string    `json:"change"`
	By          string    `json:"by"`
	AddedAt     time.Time `json:"added_at"`
	At          time.Time `json:"at"`
	Version     int64     `json:"version"` // the daemon's, from 1 in each epoch; 0: none
	Size        int64     `json:"size"`
	SHA256      []byte    `json:"-"` // of the content, 32 bytes; nil: no content
	Content     []byte    `json:"-"` // nil: no content, or it arrives as a blob
	TooLarge    bool      `json:"too_large"`
	Reason      string    `json:"reason"`
	LinkRequest string    `json:"link_request"` // id of the link request that this answers; "": none
	Line        int64     `json:"-"`            // -1: none
}

// Upload is a file that a daemon sends.
type Upload struct {
	Head   Head
	Owner  int64
	Quota  Quota // of the owner
	SHA256 [32]byte
	Size   int64
	Name   string
	Media  string
	At     time.Time
}

// OffsetError says at which offset an upload resumes.
type OffsetError struct {
	Have  int64
	Wrong bool // the hash differs: the upload starts again
}

func (e *OffsetError) Error() string {
	if e.Wrong {
		return "the bytes do not match the sha256; nothing of them is kept"
	}
	return fmt.Sprintf("the upload resumes at offset %d", e.Have)
}

var (
	// ErrNoContent is for a version of a document whose content is not stored.
	ErrNoContent = errors.New("its content is not stored")
	// ErrBadPath is for a path that cannot be a document's.
	ErrBadPath = errors.New("not a path below the working directory")
	// ErrNoDaemon is for a link request about a session that no daemon sends.
	ErrNoDaemon = errors.New("no daemon sends this session")
	// ErrTooManyLinkRequests is for another link request when MaxLinkRequests wait.
	ErrTooManyLinkRequests = errors.New("too many link requests wait for the daemon")
	// ErrTooManyUploads is for another upload when MaxUploads are unfinished.
	ErrTooManyUploads = errors.New("too many unfinished uploads")
	// ErrSize is for bytes beyond a file's size, and for a file that is stored with another size.
	ErrSize = errors.New("not the size of the file")
)
