// Package outbox drains a durable queue of transcript lines to a server: in order per stream, with retries for ever,
// one HTTP request at a time per stream. It knows batches, answers and back-off; it does not know files, and where
// the queue is kept is its owner's business (Queue).
package outbox

import "context"

// Stream is what every request of one transcript repeats. Its ID orders nothing; it only tells streams apart.
type Stream struct {
	ID          uint64
	SessionID   string // the stream's name on the wire
	ProjectHash string
	Path        string // below its root, slashes
	Cwd         string // "" when unknown
	Project     string // last element of the project's folder
	Parent      string // the parent session of an agent's transcript, else ""
	MaxEntries  int    // at most so many entries per request; 0: DefaultMaxEntries
	Extended    bool   // goes only to servers that speak the extension (history)
}

// DefaultMaxEntries is the protocol's limit of entries per request.
const DefaultMaxEntries = 100

// Position is a place between two lines of a file.
type Position struct {
	Offset int64 `json:"offset"`
	Line   int64 `json:"line"`
}

// Edge is the bytes of a line outside its braces.
type Edge struct {
	Line          int64
	Before, After []byte
}

// Batch is consecutive entries of one stream and generation, compressed; one row of the outbox.
type Batch struct {
	Seq        uint64 // given by the queue; ascending, never reused
	Kind       Kind
	Generation uint32
	RewoundTo  int64    // first line of the generation
	From, To   Position // what the batch spans in the file
	NoNewline  bool     // the last line of the batch had no newline yet
	Edges      []Edge
	Entries    int     // lines
	Items      int     // checkpoints or document events
	Blob       BlobRef // of a Blob
	Raw        int64   // bytes of the entries or items joined by commas, or of a blob's content, uncompressed
	Frame      []byte  // those bytes as one zstd frame; empty for a Marker, and for a blob that is read when sent
}

// Limits bound a Peek.
type Limits struct {
	Entries int   // at most so many entries, unless the first batch alone has more
	Raw     int64 // at most so many uncompressed bytes, unless the first batch alone has more
	Blobs   bool  // the stream's blobs are meant; else all else of it
	// OnlyObjects passes over batches that a server of unknown abilities may not get.
	OnlyObjects bool
}

// Parcel is what one request can carry: batches of one stream and one generation, in order. The caller owns it.
type Parcel struct {
	Stream  Stream
	Batches []Batch
}

// Queue is the durable queue of one or more destinations, keyed by their normalised URL. Safe for concurrent use. The
// blobs of a stream stand apart from its lines and what else goes with them: their order among these means nothing, and
// a large one would hold them back.
type Queue interface {
	// Pick names a stream of dest that has batches waiting: the one written last, or with oldest the one that waits
	// longest. skip is asked with a stream's id and its highest Seq, and says no to streams in flight.
	Pick(dest string, oldest bool, skip func(stream, last uint64) bool) (stream uint64, ok bool)
	// PickBlobs names a stream of dest that has blobs waiting: the one that waits longest. skip is as for Pick.
	PickBlobs(dest string, skip func(stream, last uint64) bool) (stream uint64, ok bool)
	// Peek copies out the first batches of a stream with Seq > after. An empty Parcel: none fit the limits.
	Peek(ctx context.Context, dest string, stream, after uint64, max Limits) (Parcel, error)
	// Settle takes batches out of the queue, and puts dead letters in, in one durable step.
	Settle(ctx context.Context, settlements []Settlement) error
}

// Settlement is the end of some batches of one stream.
type Settlement struct {
	Dest     string
	Stream   uint64
	Blobs    bool     // the batches are blobs
	Seqs     []uint64 // leave the outbox, ascending
	Entries  int64    // acknowledged entries among them
	Raw      int64    // their bytes
	Withheld int64    // entries among them that were not sent, for the server does not speak the extension
	Items    int64    // acknowledged checkpoints, document events and blobs among them
	Unwanted int64    // those of them that were not sent, for the server does not take their kind
	Gone     int64    // blobs among them whose file changed or went away before it was sent
	Plain    bool     // the server that took them did not announce the extension
	// Forgotten says that the server keeps nothing of the stream any more; what was sent counts as acknowledged.
	Forgotten bool
	Dead      []DeadLetter
}

// DeadLetter is one entry that the server refuses for what it is.
type DeadLetter struct {
	Batch  Batch  // a batch of this one entry or item
	Line   int64  // of an item: its number in the row it was queued with
	Status int    // HTTP status of the refusal
	Reason string // "rejected", "too_large", or "damaged": the row cannot be unpacked, Batch is the whole row
	Answer string // the first bytes of the server's answer
	At     int64  // Unix seconds
}

// Learned is what is remembered of a destination between runs.
type Learned struct {
	Took      bool   // has answered 2xx to entries at least once
	Config    uint64 // fingerprint of the address and key with which it last did
	Extension bool   // announced the extension in its last 2xx answer
	Plain     bool   // a request without the extension object passed where one with it was refused
	Zstd      bool   // announced Accept-Encoding
	Gzip      bool
	Accepts   Kinds `json:",omitempty"` // announced Ccship-Accept in its last 2xx answer
	MaxRaw    int64 // learned from 413; 0: none
	MaxRawAt  int64 // Unix seconds when MaxRaw was learned
}

// Memory keeps what was learned. Save is durable when it returns.
type Memory interface {
	Learned(ctx context.Context, dest string) (Learned, error)
	Learn(ctx context.Context, dest string, l Learned) error
}
