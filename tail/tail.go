// Package tail finds, watches and reads the transcript files below a set of roots, and offers every whole line, once
// and in order, to a Sink.
//
// It knows files, lines and cursors. It does not know databases, servers or conversations: it hands what it reads to
// the Sink, and Cursors returns what it must remember between runs.
//
// The contract with both: when Deliver reports a chunk as durable, the chunk's effects and its new cursor are durable
// together. Otherwise nothing happened, and the same bytes are offered again.
package tail

import (
	"context"
	"encoding/binary"
	"errors"
	"path/filepath"
	"strings"
	"time"
)

// FileID identifies a file for as long as it is remembered, across moves, rewinds and restarts. Never reused. Those of
// files that were found together ascend from a random one in the order in which they are read.
type FileID uint64

// Kind says which of Claude Code's files a transcript is.
type Kind uint8

const (
	Main    Kind = iota // <project>/<session>.jsonl, and <session>.jsonl in any other folder
	Agent               // <project>/<session>/subagents/**/agent-<id>.jsonl, or the older <project>/agent-<id>.jsonl
	History             // history.jsonl next to the projects folder
)

// File is a transcript on disk, as last seen.
type File struct {
	ID   FileID
	Kind Kind
	Path string // absolute, where it is now
	Root string // the root it was found under (for History the root whose sibling it is)
	// Name identifies the file independent of its folder: "<stem>" for Main, "<session>/agent-<id>" for an Agent
	// below a session folder, "agent-<id>" for one directly in the project folder, "history" for History.
	Name string
	// Copy distinguishes files with the same Name: 1 is the first, 2 and up are others that existed at the same time.
	// Fixed when the file is first seen; the larger file gets the lower number.
	Copy int
	Stat Stat
}

// RelPath returns the path below the root, with slashes. A file that lies elsewhere has its name only.
func (f File) RelPath() string {
	rel, err := filepath.Rel(f.Root, f.Path)
	if err != nil || strings.HasPrefix(rel, "..") {
		return filepath.Base(f.Path)
	}
	return filepath.ToSlash(rel)
}

// ProjectFolder returns the folder that holds the session's main transcript.
func (f File) ProjectFolder() string {
	dir := filepath.Dir(f.Path)
	session, _, below := strings.Cut(f.Name, "/")
	if !below {
		return dir
	}
	for len(dir) > len(f.Root) && filepath.Base(dir) != session {
		dir = filepath.Dir(dir)
	}
	return filepath.Dir(dir)
}

// Stat is what the file system reports about a file. Comparable; times are Unix nanoseconds.
type Stat struct {
	Device, Inode uint64 // both 0 where the system has none
	Size          int64
	ModTime       int64
	ChangeTime    int64 // equals ModTime where the system has none
}

// Provisional describes a last line that was delivered before its newline was written. Zero: none.
type Provisional struct {
	Length int64 // bytes after the cursor's Offset
	Hash   uint64
}

// Tracked is everything remembered of a file between inspections, and between runs.
type Tracked struct {
	File        File
	Cursor      Cursor
	Provisional Provisional
	Verified    Stat          // the file's stat when all of its marks were last verified
	Gone        int64         // Unix seconds at which the path was first missing; 0: it exists
	Missed      time.Duration // how long listings have missed it since then, while the program ran
}

// Chunk is a piece of a file: whole lines, with the cursors before and after them.
type Chunk struct {
	File File
	Prev Cursor // the cursor that the sink has now
	From Cursor // where this chunk starts; differs from Prev exactly after a rewind (generation one higher)
	To   Cursor
	// Lines is the bytes from From.Offset to To.Offset: whole lines, each with its newline. Empty for a pure rewind.
	// Valid until Deliver returns. When Oversize is set, Lines is nil.
	Lines []byte
	// Oversize describes the one line between From and To when it is longer than the cap.
	Oversize *Oversize
	// Marks are the prefix hashes inside (From.Offset, To.Offset]. Marks beyond From.Offset that the sink holds
	// from an older generation are to be removed in the same step.
	Marks []Mark
	// Sealed: the first line of Lines was delivered as Provisional before. Do not queue it again; only its newline is new.
	Sealed bool
	// Provisional is a last line without newline after To: a complete JSON object, unchanged for a while. nil: none.
	// Valid until Deliver returns. To does not include it.
	Provisional []byte
	// Tracked is what to store with the chunk (its Cursor equals To).
	Tracked Tracked
	// Live: the file was written just now. False while existing files are imported.
	Live bool
	// Before is the size of the file when this run first saw it, or 0 once all of that is delivered: bytes after it were
	// written while this run watched. Also 0 for a file that was created during this run.
	Before int64
}

// Oversize describes a line longer than the cap, of which only this is delivered.
type Oversize struct {
	Offset, Length int64 // Length without the newline
	SHA256         [32]byte
}

// Result is the outcome of one chunk. The zero Result means durable.
type Result struct {
	// Err is nil when the chunk is durable. ErrStale: the sink's cursor is not Prev; the tailer reloads it and reads the
	// file again. ErrLater: offer the same bytes again after After (0: at the next change or Wake).
	Err   error
	After time.Duration
}

var (
	ErrStale = errors.New("cursor moved by someone else")
	ErrLater = errors.New("not taken yet")
	// ErrReread asks for the file to be delivered again from line 0, in a new generation, at once.
	ErrReread = errors.New("to be read again from line 0")
)

// Sink makes chunks durable. Deliver may be called concurrently, but never for one file twice at a time.
type Sink interface {
	// Deliver makes the chunks durable in as few steps as it can. It returns one Result per chunk, in order. An error
	// means that nothing happened; the tailer waits and offers all of them again.
	Deliver(ctx context.Context, chunks []Chunk) ([]Result, error)
	// HasSpace reports whether more may be read now. live: for files written just now, which may use space that an
	// import may not. When space is free again, the owner calls Tailer.Wake.
	HasSpace(live bool) bool
}

// Cursors stores what the tailer remembers. Calls may be slow; idling makes none.
type Cursors interface {
	Load(ctx context.Context) ([]Tracked, error)            // everything known, at the start
	Reload(ctx context.Context, id FileID) (Tracked, error) // one file, after ErrStale
	Marks(ctx context.Context, id FileID) ([]Mark, error)   // all marks of a file, ascending
	Update(ctx context.Context, files []Tracked) error      // moved and missing files; never changes a Cursor
	// Forget removes files that will not return. It answers those that it could remove; the others stay as they are.
	Forget(ctx context.Context, ids []FileID) ([]FileID, error)
}

// cleanPath returns the form in which paths are compared.
func cleanPath(p string) string {
	if abs, err := filepath.Abs(p); err == nil {
		return abs
	}
	return filepath.Clean(p)
}

// splitPath splits a path into its folder and its last element. Both share the path's bytes.
func splitPath(p string) (dir, base string) {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] == filepath.Separator || p[i] == '/' {
			if i == 0 {
				return p[:1], p[1:]
			}
			return p[:i], p[i+1:]
		}
	}
	return ".", p
}

// joinPath is filepath.Join for a clean folder and a single name.
func joinPath(dir, name string) string {
	if len(dir) > 0 && (dir[len(dir)-1] == filepath.Separator || dir[len(dir)-1] == '/') {
		return dir + name
	}
	return dir + string(filepath.Separator) + name
}

// wish is something that is asked of a file's next inspection. It counts, so that one which comes while another is
// being granted is not lost.
type wish struct{ asked, granted uint16 }

func (w *wish) ask() { w.asked++ }

// open reports whether it was asked for since it was last granted.
func (w wish) open() bool { return w.asked != w.granted }

// grant grants what was asked for by begun, a copy from when the work began.
func (w *wish) grant(begun wish) { w.granted = begun.asked }

// grantedSince reports whether what was asked for last in then, a copy, is granted by now.
func (w wish) grantedSince(then wish) bool { return int16(w.granted-then.asked) >= 0 }

// wishes are all that can be asked of an inspection.
type wishes struct {
	deep   wish // verify all bytes before the cursor
	reread wish // from line 0 in a new generation
	reload wish // another part of the daemon changed the stored cursor
	look   wish // Sync waits for an inspection that begins after its call
}

func (w wishes) open() bool {
	return w.deep.open() || w.reread.open() || w.reload.open() || w.look.open()
}

// appendPacked adds numbers: small ones, of either sign, take one byte.
func appendPacked(b []byte, numbers ...int64) []byte {
	for _, n := range numbers {
		b = binary.AppendVarint(b, n)
	}
	return b
}

// takePacked reads numbers that Append has written, and returns what follows them.
func takePacked(b []byte, into ...*int64) []byte {
	for _, n := range into {
		var size int
		*n, size = binary.Varint(b)
		b = b[size:]
	}
	return b
}
