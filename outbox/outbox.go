// Package outbox drains a durable queue of transcript lines to a server: in order within a stream, one HTTP request per
// stream at a time, retrying for ever. It knows batches, requests, answers and backoff. It does not know files, nor how
// the queue is stored (see Queue).
package outbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/ccship/ccship/protocol"
)

// Stream is what every request of one transcript repeats. The ID only distinguishes streams; it has no order.
type Stream struct {
	ID          uint64
	SessionID   string // the stream's name on the wire
	ProjectHash string
	Repository  string // one for all clones of a repository that are one project, "" unknown; see daemon/route
	Path        string // below its root, slashes
	Cwd         string // "" when unknown
	Project     string // last element of the project's folder
	Parent      string // the parent session of an agent's transcript, else ""
	MaxEntries  int    // limit of entries per request; 0: DefaultMaxEntries
	Extended    bool   // goes only to servers that speak the extension (history)
	Epoch       string // in which its lines go on; "": Origin.Epoch
}

// DefaultMaxEntries is the protocol's limit of entries per request.
const DefaultMaxEntries = 100

// Batch is consecutive entries of one stream and generation, compressed; one row of the outbox.
type Batch struct {
	Seq        uint64 // given by the queue; ascending, never reused
	Kind       Kind
	Generation uint32
	RewoundTo  int64             // first line of the generation
	From, To   protocol.Position // what the batch spans in the file
	NoNewline  bool              // the last line of the batch had no newline yet
	Edges      []protocol.Edge
	Entries    int     // lines
	Items      int     // checkpoints or document events
	Blob       BlobRef // of a Blob
	Raw        int64   // bytes of the entries or items joined by commas, or of a blob's content, uncompressed
	Frame      []byte  // those bytes as one zstd frame; empty for a Marker, and for a blob that is read when sent
}

// Limits bound a Peek.
type Limits struct {
	Entries int   // limit of entries; a first batch with more is returned alone
	Raw     int64 // limit of uncompressed bytes; a larger first batch is returned alone
	Blobs   bool  // select the stream's blobs; false: everything else of it
	// OnlyObjects skips batches that a server with unknown capabilities must not get.
	OnlyObjects bool
}

// StreamBatches holds batches of one generation of a stream, in order: what one request can carry. The caller owns it.
type StreamBatches struct {
	Stream  Stream
	Batches []Batch
}

// Queue is the durable queue of one or more destinations, keyed by their normalised URL. Safe for concurrent use. The
// blobs of a stream have a queue of their own: they need no order relative to lines, and a large one would delay them.
type Queue interface {
	// Pick returns a stream of dest that has batches waiting: the one written last, or with oldest the one that has
	// waited longest. It leaves out streams for which skip returns true; last is the stream's highest Seq.
	Pick(dest string, oldest bool, skip func(stream, last uint64) bool) (stream uint64, ok bool)
	// PickBlobs returns the stream of dest whose blobs have waited longest. skip is as for Pick.
	PickBlobs(dest string, skip func(stream, last uint64) bool) (stream uint64, ok bool)
	// Peek copies out the first batches of a stream with Seq > after. No batches: none fit the limits.
	Peek(ctx context.Context, dest string, stream, after uint64, max Limits) (StreamBatches, error)
	// SettleLater removes batches from the queue and adds dead letters, in one durable step. Until now is closed it waits
	// for another write to share its step; nil: it does not wait.
	SettleLater(ctx context.Context, settlements []Settlement, now <-chan struct{}) error
}

// Settlement says what became of batches of one stream. Settling removes them from the queue.
type Settlement struct {
	Dest     string
	Stream   uint64
	Blobs    bool     // the batches are blobs
	Seqs     []uint64 // batches to remove, ascending
	Entries  int64    // acknowledged entries among them
	Raw      int64    // their bytes
	Withheld int64    // entries not sent, because the server does not speak the extension
	Items    int64    // acknowledged checkpoints, document events and blobs among them
	Unwanted int64    // items not sent, because the server does not accept their kind
	Gone     int64    // blobs whose file changed or was removed before it was sent
	Plain    bool     // the server that took them did not announce the extension
	// Forgotten: the server has forgotten the stream and stores nothing of it. What was sent counts as acknowledged.
	Forgotten bool
	Ledger    protocol.Ledger // of the server when it had answered; zero: none
	Dead      []DeadLetter
}

// DeadLetter is one entry or item that the server refuses for its content.
type DeadLetter struct {
	Batch  Batch  // a batch of this one entry or item
	Line   int64  // line number; of an item: its position in the batch it was queued in
	Status int    // HTTP status of the refusal
	Reason string // "rejected", "too_large", or "damaged": the batch cannot be unpacked and is kept whole
	Answer string // the first bytes of the server's answer
	At     int64  // Unix seconds
}

// ReasonDamaged is the reason of a dead letter whose batch cannot be unpacked; it is kept whole.
const ReasonDamaged = "damaged"

// Learned is what the queue's owner keeps of a destination between runs.
type Learned struct {
	Took      bool   // has answered 2xx to entries at least once
	Config    uint64 // fingerprint of the address and key with which it last did
	Extension bool   // announced the extension in its last 2xx answer
	Zstd      bool   // and Accept-Encoding: zstd
	Accepts   Kinds  `json:",omitempty"` // announced Ccship-Accept in its last 2xx answer
	MaxRaw    int64  // learned from 413; 0: none
	MaxRawAt  int64  // Unix seconds when MaxRaw was learned
	TookRaw   int64  `json:",omitempty"` // the largest request of entries that it accepted, in uncompressed bytes
	TookWire  int64  `json:",omitempty"` // the same as it was sent
	Ledger    protocol.Ledger
}

// Memory keeps what was learned. Learn is durable when it returns.
type Memory interface {
	Learned(ctx context.Context, dest string) (Learned, error)
	Learn(ctx context.Context, dest string, l Learned) error
}

// Owner of the queue learns from a drainer what concerns more than the current batch, and opens files for it. dest is
// the key of the drainer's destination. Methods are called from goroutines of Run, several at once.
type Owner interface {
	// Announced is called when a server that accepted entries without the extension begins to speak it. Everything it
	// accepted before is settled by then. Late answers may cause a second call.
	Announced(dest string)
	// Forgotten is called when the server answers that it has forgotten a stream. What was sent is settled by then.
	// stream may be that of a transcript's blobs.
	Forgotten(stream uint64)
	// Accepts is called when the server begins to accept artifact kinds. again: it accepted lines before, so artifacts
	// may have been withheld. It returns nil once its effects are durable. It is called again after an error and after
	// a crash: the batches whose answer announced the kinds are still queued then.
	Accepts(dest string, kinds Kinds, again bool) error
	// LinkRequests is called when the server announces pending link requests. It must not block.
	LinkRequests(dest string)
	// OutOfStep is called when the server refuses to store because it has other lines than this queue continues. Nothing
	// is sent to it (of the stream, if why names one) until InStep or StreamInStep is called. It must not block.
	OutOfStep(dest string, why protocol.Refusal)
	// OpenBlob opens the file of a blob whose content is not in the queue. cwd is that of its stream. After any error the
	// blob is given up.
	OpenBlob(dest, cwd string, ref *BlobRef) (Content, error)
}

// noOwner is the owner of a drainer without one.
type noOwner struct{}

func (noOwner) Announced(string)                                  {}
func (noOwner) Forgotten(uint64)                                  {}
func (noOwner) Accepts(string, Kinds, bool) error                 { return nil }
func (noOwner) LinkRequests(string)                               {}
func (noOwner) OutOfStep(string, protocol.Refusal)                {}
func (noOwner) OpenBlob(_, _ string, _ *BlobRef) (Content, error) { return nil, errNoOwner }

var errNoOwner = errors.New("blobs cannot be opened: the drainer has no owner")

// Bell wakes one goroutine. It carries nothing: the woken goroutine checks what to do.
type Bell chan struct{}

// NewBell returns a bell that has not rung.
func NewBell() Bell { return make(Bell, 1) }

// Ring never blocks.
func (b Bell) Ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// Kind says what a batch holds.
type Kind uint8

const (
	Objects     Kind = iota // JSON objects: any server accepts them
	Opaque                  // lines that are no JSON object, and oversize notes: only for servers that speak the extension
	Marker                  // no entries: a rewind or a final newline, only for servers that speak the extension
	Checkpoints             // no lines: checkpoints, only for servers that announce "checkpoints"
	Documents               // no lines: events of linked documents, only for servers that announce "documents"
	Blob                    // no lines: a document version or an attachment, only for servers that announce "blobs"
)

// artifact reports whether the kind holds no lines of the transcript.
func (k Kind) artifact() bool { return k >= Checkpoints }

// joins reports whether batches of both kinds may share a request.
func (k Kind) joins(other Kind) bool { return k == other || !k.artifact() && !other.artifact() }

// Kinds is a set of artifact kinds.
type Kinds uint8

// Has reports whether the set has a kind.
func (s Kinds) Has(k Kind) bool { return k.artifact() && s&(1<<(k-Checkpoints)) != 0 }

// With returns the set with a kind added.
func (s Kinds) With(k Kind) Kinds { return s | 1<<(k-Checkpoints) }

// Names lists the set's kinds as servers announce them, in order. It is never nil.
func (s Kinds) Names() []string {
	names := []string{}
	for _, k := range artifactKinds() {
		if s.Has(k) {
			names = append(names, k.announced())
		}
	}
	return names
}

func artifactKinds() []Kind { return []Kind{Checkpoints, Documents, Blob} }

// announced returns the kind's name in Ccship-Accept.
func (k Kind) announced() string {
	if k == Blob {
		return "blobs"
	}
	return k.String()
}

// String returns the kind's name, as listings show it.
func (k Kind) String() string {
	switch k {
	case Checkpoints:
		return "checkpoints"
	case Documents:
		return "documents"
	case Blob:
		return "blob"
	}
	return "lines"
}

// BlobRef identifies the file of a Blob.
type BlobRef struct {
	SHA256 string // of the whole content, lower-case hex
	Name   string // path below the session's folder, slashes
	Media  string // media type
	Size   int64  // bytes
	// Where the content is read unless the queue holds it: Path, with slashes, below Root. Links out of Root are refused.
	Root, Path string
}

// BlobInRow is the limit in bytes up to which the queue holds a blob's content. A larger file is read when it is sent.
const BlobInRow = 1 << 20

// Checkpoints returns a batch of checkpoints, JSON objects as the server gets them. The caller owns it.
func (p *Packer) Checkpoints(items []json.RawMessage) Batch { return p.items(Checkpoints, items) }

// Documents returns a batch of document events, JSON objects as the server gets them. The caller owns it.
func (p *Packer) Documents(events []json.RawMessage) Batch { return p.items(Documents, events) }

func (p *Packer) items(kind Kind, items []json.RawMessage) Batch {
	var raw []byte
	for i, item := range items {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = append(raw, bytes.TrimSpace(item)...)
	}
	return Batch{Kind: kind, Items: len(items), Raw: int64(len(raw)), Frame: p.Pack(nil, raw)}
}

// Blob returns a batch of one file, which the caller owns. With nil content the file is read when it is sent.
func (p *Packer) Blob(ref BlobRef, content []byte) Batch {
	b := Batch{Kind: Blob, Items: 1, Blob: ref}
	if content != nil {
		b.Raw, b.Frame = int64(len(content)), p.Pack(nil, content)
	}
	return b
}
