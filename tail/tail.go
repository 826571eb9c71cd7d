// Package tail finds, watches and reads the transcript files below a set of roots, and offers every whole line
// of them, once and in order, to a Sink.
//
// It knows files, lines and cursors. It has never heard of databases, servers or conversations: what it reads it
// hands to the Sink, and what it must remember between runs it is given back by Cursors.
//
// The contract with both: when Deliver answers that a chunk is durable, the chunk's effects and its new cursor are
// durable together; otherwise nothing happened and the same bytes are offered again.
package tail

import (
	"context"
	"errors"
	"time"
)

// FileID names a file for as long as it is remembered, over moves, rewinds and restarts. Random, never reused.
type FileID uint64

// Kind says which of Claude Code's files a transcript is.
type Kind uint8

const (
	Main    Kind = iota // <project>/<session>.jsonl
	Agent               // <project>/<session>/subagents/**/agent-<id>.jsonl, or the older <project>/agent-<id>.jsonl
	History             // history.jsonl beside the projects folder
)

// File is a transcript on disk, as last seen.
type File struct {
	ID   FileID
	Kind Kind
	Path string // absolute, where it is now
	Root string // the root it was found under (for History the root whose sibling it is)
	// Name is what the file is called wherever it lies: "<stem>" for Main, "<session>/agent-<id>" for an Agent
	// below a session folder, "agent-<id>" for one directly in the project folder, "history" for History.
	Name string
	// Copy tells files of one Name apart: 1 is the plain one, 2 and up further ones that lived at the same time.
	// Fixed at first sight, when the larger gets the lower number.
	Copy int
	Stat Stat
}

// Stat is what the file system says of a file without reading it. Comparable; times are Unix nanoseconds.
type Stat struct {
	Device, Inode uint64 // both 0 where the system has none
	Size          int64
	ModTime       int64
	ChangeTime    int64 // equals ModTime where the system has none
}

// Cursor is where reading of a file stopped. Comparable: two equal cursors are the same place in the same bytes.
type Cursor struct {
	Offset     int64  // bytes read; always the start of a line
	Line       int64  // lines read, blank ones counted; the 0-based number of the next line
	Generation uint32 // how often the file was rewound
	Anchor     uint64 // hash of the up to AnchorSize bytes before Offset; 0 at Offset 0
	Mark       int64  // offset of the last Mark at or before Offset; 0 when there is none
	Segment    uint64 // hash of the bytes from Mark to Offset
}

// AnchorSize is how many bytes before a cursor its Anchor covers at the most.
const AnchorSize = 4 << 10

// Mark is one sparse prefix hash: proof of the bytes since the Mark before it, at a line start. Marks of a file are
// append-only, ascending, never beyond its cursor, and at most 128 KiB apart unless a single line is longer.
type Mark struct {
	Offset int64
	Line   int64
	Hash   uint64 // of the bytes from the previous Mark's Offset (0 for the first) to Offset
}

// Provisional remembers a last line that was delivered before its newline was written. Zero: there is none.
type Provisional struct {
	Length int64 // bytes after the cursor's Offset
	Hash   uint64
}

// Tracked is everything remembered of a file between two looks, and between two runs.
type Tracked struct {
	File        File
	Cursor      Cursor
	Provisional Provisional
	Verified    Stat  // the file's stat when all of its marks were last known to hold
	Gone        int64 // Unix seconds since when the path has been missing; 0 while it is there
	Listings    int64 // successful listings that missed it since then
}

// Chunk is a piece of a file on its way: whole lines, and the cursors on both sides.
type Chunk struct {
	File File
	Prev Cursor // what the sink holds now
	From Cursor // where this chunk starts; differs from Prev exactly when a rewind was found (generation one higher)
	To   Cursor
	// Lines is the bytes from From.Offset to To.Offset: whole lines, each with its newline. Empty for a pure rewind.
	// Valid until Deliver returns. When Oversize is set, Lines is nil.
	Lines []byte
	// Oversize stands for the one line from From to To that is longer than the cap.
	Oversize *Oversize
	// Marks are the prefix hashes inside (From.Offset, To.Offset]. Marks beyond From.Offset that the sink holds
	// from an older generation are to be removed in the same step.
	Marks []Mark
	// Sealed says that the first line of Lines was delivered as Provisional before: it is not to be queued again,
	// only its newline is news.
	Sealed bool
	// Provisional is a last line without newline that follows To: a complete JSON object, quiet for a while.
	// Valid until Deliver returns; nil when there is none. To does not include it.
	Provisional []byte
	// Tracked is what to remember once the chunk is durable (its Cursor equals To).
	Tracked Tracked
	// Live says the file was written just now; false while importing what was there before.
	Live bool
	// Before is the size that the file had when this run saw it first, 0 once all of that was delivered: what lies
	// behind was written while this run looked on. 0 too for a file that came while it did.
	Before int64
}

// Oversize describes a line longer than the cap, of which only this is delivered.
type Oversize struct {
	Offset, Length int64 // Length without the newline
	SHA256         [32]byte
}

// Result is what became of one chunk. The zero Result: durable.
type Result struct {
	// Err is nil when the chunk is durable. ErrStale: the sink's cursor is not Prev; the tailer loads it and looks
	// again. ErrLater: not now, the same bytes are to be offered again after After (0: at the next change or Look).
	Err   error
	After time.Duration
}

var (
	ErrStale = errors.New("cursor moved by someone else")
	ErrLater = errors.New("not taken yet")
	// ErrReread asks for the file to be delivered again from line 0, in a new generation, at once.
	ErrReread = errors.New("to be read again from line 0")
)

// Sink takes chunks durably. Deliver may be called by several goroutines at once, never twice at once for one file.
type Sink interface {
	// Deliver makes all chunks it takes durable in as few steps as it can. It answers one Result a chunk, in order;
	// an error means that nothing at all happened (the tailer waits and offers all of them again).
	Deliver(ctx context.Context, chunks []Chunk) ([]Result, error)
	// Room says whether more may be read now; live is asked for files written just now, which have room longer than
	// an import. When room comes back the owner calls Tailer.Wake.
	Room(live bool) bool
}

// Cursors is the tailer's memory. Implemented by the state; every call may be slow, none is made on an idle pass.
type Cursors interface {
	Load(ctx context.Context) ([]Tracked, error)            // everything known, at start
	Reload(ctx context.Context, id FileID) (Tracked, error) // one file, after ErrStale
	Marks(ctx context.Context, id FileID) ([]Mark, error)   // all marks of a file, ascending
	Update(ctx context.Context, files []Tracked) error      // moves and vanishings; never moves a Cursor
	Forget(ctx context.Context, ids []FileID) error         // files gone for good
}
