package server

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// MaxBlob is the largest file that is taken, in bytes.
	MaxBlob = 256 << 20
	// MaxChunk is how much of a file one request may bring, in bytes.
	MaxChunk = 1 << 20
	// BlobPatience is how long an upload that was begun waits for its next chunk; then what came of it is removed.
	BlobPatience = 7 * 24 * time.Hour
	// MaxUploads and MaxUploadBytes bound what one user has begun to upload and not ended. Beyond them the ones that
	// have rested longest begin again.
	MaxUploads     = 32
	MaxUploadBytes = 2 << 30
)

// PaperIngester takes what daemons send beside lines, durably. Safe for concurrent use. Repeating anything changes
// nothing. ErrForgotten says that nothing of the session is stored any more, and never will be.
type PaperIngester interface {
	// PutCheckpoints stores all or nothing. Of two with one id the one of the newer epoch stands.
	PutCheckpoints(ctx context.Context, b *CheckpointBatch) error
	// PutDocuments stores all or nothing. Every version is kept; their order is that of epochs and of the numbers that
	// the daemon gave, not of arrival. Of two with one number in one epoch the one that came later shows.
	PutDocuments(ctx context.Context, b *DocumentBatch) error
	// StartBlob begins an upload, or goes on with one, and answers how many bytes are durable. ErrSize when the file is
	// here already and has another size; ErrTooManyUploads when the user has begun too many.
	StartBlob(ctx context.Context, u *Upload) (have int64, complete bool, err error)
	// PutBlob stores the bytes from offset on, and answers how many are durable then. An *OffsetError says which
	// offset it would have taken. ErrNotFound for an upload that was not begun; ErrSize beyond the file's size.
	PutBlob(ctx context.Context, owner int64, sum [32]byte, offset int64, data []byte, at time.Time) (have int64, err error)
	// EndBlob checks the hash of what has come, and lets it be seen. An *OffsetError says where to go on: at 0 when the
	// hash was another, and nothing is kept.
	EndBlob(ctx context.Context, u *Upload) error
	// SweepBlobs removes uploads that got nothing since before, and answers how many.
	SweepBlobs(ctx context.Context, before time.Time) (int64, error)
	// Asked lists the wishes that wait for a machine's daemon, the oldest first.
	Asked(ctx context.Context, owner int64, machine string) ([]Wish, error)
	// AuditBlobs reads every file that is stored; found gets those whose bytes are not what they were.
	AuditBlobs(ctx context.Context, found func(problem string), progress func(blobs, bytes int64)) error
}

// CheckpointBatch is one request's checkpoints. Of Head only what names and describes the stream counts, as in all of these.
type CheckpointBatch struct {
	Head     Head
	Owner    int64
	List     []Checkpoint
	Received time.Time
}

// DocumentBatch is one request's events.
type DocumentBatch struct {
	Head     Head
	Owner    int64
	Events   []DocumentEvent
	Received time.Time
}

// What happens to a document.
const (
	Linked   = "linked" // with its first content
	Unlinked = "unlinked"
	Modified = "modified"
	Deleted  = "deleted"
	Refused  = "refused" // a wish, with a reason
)

// DocumentEvent is something that happened to a document.
type DocumentEvent struct {
	Path     string
	Change   string
	By       string
	AddedAt  time.Time
	At       time.Time
	Version  int64 // the daemon's, from 1 in each epoch; 0: none
	Size     int64
	SHA256   []byte // of the content, 32 bytes; nil: no content
	Content  []byte // nil: none, or it comes or came as a file
	TooLarge bool
	Reason   string
	Wish     string // the id of the wish that this answers
	Line     int64  // -1: none
}

// Upload is a file that a daemon sends.
type Upload struct {
	Head   Head
	Owner  int64
	SHA256 [32]byte
	Size   int64
	Name   string
	Media  string
	At     time.Time
}

// OffsetError says which offset an upload goes on at.
type OffsetError struct {
	Have  int64
	Wrong bool // the hash was another: it begins again
}

func (e *OffsetError) Error() string {
	if e.Wrong {
		return "the bytes do not have the hash that was said; nothing of them is kept"
	}
	return fmt.Sprintf("the upload goes on at offset %d", e.Have)
}

var (
	// ErrNoContent is for a version of a document whose content is not here.
	ErrNoContent = errors.New("its content is not stored")
	// ErrBadPath is for a path that can't be a document's.
	ErrBadPath = errors.New("not a path below the working directory")
	// ErrNoDaemon is for a wish about a session that no daemon sends.
	ErrNoDaemon = errors.New("no daemon sends this session")
	// ErrTooManyWishes is for one more wish when MaxWishes wait.
	ErrTooManyWishes = errors.New("too many wishes wait for the daemon")
	// ErrTooManyUploads is for one more upload when MaxUploads are under way.
	ErrTooManyUploads = errors.New("too many uploads are under way")
	// ErrSize is for bytes beyond a file's size, and for a file that has another one.
	ErrSize = errors.New("not the size of the file")
)
