package server

import (
	"context"
	"errors"
	"fmt"
	"time"
)

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
