package route

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/redact"
)

// batchBytes is the number of uncompressed bytes that ends a batch. A retry repeats a whole batch, and so does a
// restart after a crash, so it is well below the 4 MiB of a request; larger batches hardly compress better.
const batchBytes = 512 << 10

// batcher turns the lines of chunks into batches: consecutive entries of one kind, spliced and compressed. It is for
// one goroutine at a time; the batches that it returns are valid until release.
type batcher struct {
	packer  *outbox.Packer
	rules   *Rules         // leave out lines of some record types
	history *HistoryFilter // leaves out further lines; nil: none
	masker  *redact.Masker // masks secrets in this chunk; nil: none

	facts      *state.Routing // of this chunk's file
	file       *tail.File
	generation uint32
	maxEntries int   // entries in a batch
	sentBefore int64 // lines below this were sent before ccship was installed

	batches []outbox.Batch    // of this chunk
	open    outbox.Batch      // the one that is being filled
	from    protocol.Position // where it starts
	at      protocol.Position // after the last line seen
	raw     []byte            // its entries, joined by commas
	frames  []byte            // compressed frames of the closed ones, which point into it

	excluded   int64          // lines of this chunk that were left out
	compaction bool           // a line of this chunk may be a compaction's record
	odd        state.OddList  // lines of this chunk that are no entries of their own record
	masked     []redact.Range // in all chunks since release; offsets have no meaning here
}

// build returns the batches of a chunk. facts are the file's, with RewoundTo already set for its generation.
func (b *batcher) build(c *tail.Chunk, facts *state.Routing) []outbox.Batch {
	b.facts, b.file, b.generation = facts, &c.File, c.To.Generation
	b.maxEntries, b.sentBefore = facts.Stream.MaxEntries, 0
	if b.maxEntries <= 0 {
		b.maxEntries = outbox.DefaultMaxEntries
	}
	if b.generation == 0 {
		b.sentBefore = facts.SentBefore
	}
	b.at = protocol.Position{Offset: c.From.Offset, Line: c.From.Line}
	b.batches, b.open, b.from, b.raw = nil, outbox.Batch{}, b.at, b.raw[:0]
	b.excluded, b.compaction = 0, false
	b.odd.Clear()

	lines := c.Lines
	if c.Sealed {
		_, lines = b.cutLine(lines)
	}
	for len(lines) > 0 {
		var line []byte
		index := b.at.Line
		line, lines = b.cutLine(lines)
		b.add(line, index)
	}
	if c.Oversize != nil {
		b.addOversize(c)
	}
	b.close(b.at)
	if c.Provisional != nil {
		b.addProvisional(c.Provisional)
	}
	if len(b.batches) == 0 && (c.Sealed || c.From != c.Prev) {
		b.mark()
	}
	return b.batches
}

// cutLine takes the first line off lines and moves b.at past it.
func (b *batcher) cutLine(lines []byte) (line, rest []byte) {
	n := bytes.IndexByte(lines, '\n')
	b.at.Offset += int64(n + 1)
	b.at.Line++
	return lines[:n], lines[n+1:]
}

// add queues one line, unless it is left out. b.at is already behind it.
func (b *batcher) add(line []byte, index int64) {
	l := transcript.Scan(line)
	switch {
	case l.Shape == transcript.Malformed:
		b.odd.Add(index, state.OddMalformed)
	case l.Shape != transcript.Object || l.HasLineIndex:
		b.odd.Add(index, state.OddBlank)
	case string(l.Type) == "system" && bytes.Contains(line, []byte("compact_boundary")):
		b.compaction = true
	}
	if index < b.sentBefore || b.rules.LeavesOut(&l) ||
		b.history != nil && b.history.Excludes(b.file, line) {
		b.excluded++
		return
	}
	line, masked := b.masker.Scanned(line, &l)
	b.masked = append(b.masked, masked...)
	if l.Shape != transcript.Object || l.HasLineIndex { // two of them would leave it open which one counts
		b.begin(outbox.Opaque, len(line)*4/3)
		b.raw = transcript.AppendOpaque(b.raw, line, index)
		return
	}
	b.begin(outbox.Objects, len(line))
	if l.Start > 0 || l.End < len(line) {
		b.open.Edges = append(b.open.Edges, protocol.Edge{
			Line:   index,
			Before: bytes.Clone(line[:l.Start]),
			After:  bytes.Clone(line[l.End:]),
		})
	}
	b.raw = transcript.AppendEntry(b.raw, line, l, index)
}

// begin counts an entry of the given kind and size, and writes the separator before it: into the open batch if the
// entry fits there, else into a new batch. The caller appends the entry to b.raw.
func (b *batcher) begin(kind outbox.Kind, size int) {
	if b.open.Entries > 0 && (b.open.Kind != kind || b.open.Entries >= b.maxEntries || len(b.raw)+size > batchBytes) {
		b.close(b.open.To)
	}
	if b.open.Entries > 0 {
		b.raw = append(b.raw, ',')
	}
	b.open.Kind, b.open.To = kind, b.at
	b.open.Entries++
}

// close compresses the open batch, if it has entries. The batch ends at to, where the next one starts.
func (b *batcher) close(to protocol.Position) {
	if b.open.Entries == 0 {
		return
	}
	b.open.Generation, b.open.RewoundTo = b.generation, b.facts.RewoundTo
	b.open.From, b.open.To = b.from, to
	b.open.Raw = int64(len(b.raw))
	start := len(b.frames)
	b.frames = b.packer.Pack(b.frames, b.raw)
	b.open.Frame = b.frames[start:len(b.frames):len(b.frames)]
	b.batches = append(b.batches, b.open)
	b.open, b.raw, b.from = outbox.Batch{}, b.raw[:0], to
}

// addOversize queues the digest of a line that is longer than the cap.
func (b *batcher) addOversize(c *tail.Chunk) {
	b.close(b.at)
	index := b.at.Line
	b.at = protocol.Position{Offset: c.To.Offset, Line: c.To.Line}
	b.odd.Add(index, state.OddOversize)
	b.begin(outbox.Opaque, 0)
	b.raw = transcript.AppendOversize(b.raw, index, c.Oversize.Offset, c.Oversize.Length, c.Oversize.SHA256)
}

// addProvisional queues a last line that has no newline yet, in its own batch.
func (b *batcher) addProvisional(line []byte) {
	index := b.at.Line
	b.at.Offset += int64(len(line))
	b.at.Line++
	b.add(line, index)
	b.close(b.at)
	if n := len(b.batches); n > 0 && b.batches[n-1].To == b.at {
		b.batches[n-1].NoNewline = true
	}
}

// mark queues a batch without entries: for a rewind without lines, or for the newline of a line already queued.
func (b *batcher) mark() {
	b.batches = append(b.batches, outbox.Batch{
		Kind: outbox.Marker, Generation: b.generation, RewoundTo: b.facts.RewoundTo, From: b.from, To: b.at,
	})
}

// release invalidates all batches returned so far, and drops buffers that one huge line made large.
func (b *batcher) release() {
	const keep = 4 << 20
	if cap(b.raw) > keep {
		b.raw = nil
	}
	if b.frames = b.frames[:0]; cap(b.frames) > keep {
		b.frames = nil
	}
	b.batches, b.facts, b.file = nil, nil, nil
	b.masked = b.masked[:0]
}

// sentBefore returns the number of first lines that the earlier hook has sent to the project's own server. If the file
// has fewer lines than the hook recorded, it was rewound since, and none of its lines count as sent.
func sentBefore(p project.Policy, session, path string) int64 {
	last, ok := project.LastSent(p.Dir, session)
	if !ok {
		return 0
	}
	if lines, err := countLines(path); err != nil || last >= lines {
		return 0
	}
	return last + 1
}

// countLines counts the lines of a file, including a last one without newline.
func countLines(path string) (int64, error) {
	f, err := sys.OpenRegular(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var n int64
	buf, last := make([]byte, 256<<10), byte('\n')
	for {
		k, err := f.Read(buf)
		if k > 0 {
			n += int64(bytes.Count(buf[:k], []byte{'\n'}))
			last = buf[k-1]
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, err
		}
	}
	if last != '\n' {
		n++
	}
	return n, nil
}

// Verdict is what happens to a chunk.
type Verdict uint8

// The verdicts. The zero value is Take.
const (
	Take     Verdict = iota // its lines are queued
	Later                   // it is offered again
	Reread                  // deliver its file again from line 0 first
	Excluded                // its lines stay on this machine
)

// Decision is what is to be done with a chunk.
type Decision struct {
	Verdict   Verdict
	After     time.Duration // with Later: how long to wait; 0 until something changes
	Exclusion Exclusion     // with Excluded

	// With Take:

	Facts              state.Routing // of the file, as they are to be committed with the chunk
	New                bool          // the file has no stream yet: a new transcript
	DestinationChanged bool          // the whole file goes to another server, or again to its own; this is not a rewind
	Compaction         bool          // a line may be a compaction's record; set by the reader of the lines
	// CleanBy searched every line for secrets and found none; nil: it found some, or did not search every line. Set by
	// the reader of the lines.
	CleanBy *redact.Masker
}

// Decide decides about a chunk, and updates the list of excluded files. An error means that the state cannot be read,
// and that nothing has changed.
func (r *Router) Decide(ctx context.Context, c *tail.Chunk) (Decision, error) {
	d, err := r.decide(ctx, c)
	if err != nil {
		return d, fmt.Errorf("read facts: %w", err)
	}
	if d.Verdict == Excluded {
		r.exclusions.add(c.File.ID, d.Exclusion)
	} else {
		r.exclusions.remove(c.File.ID)
	}
	return d, nil
}

func (r *Router) decide(ctx context.Context, c *tail.Chunk) (Decision, error) {
	facts, known, err := r.db.Files.Routing(ctx, c.File.ID)
	if err != nil {
		return Decision{}, err
	}
	fresh := !known || !facts.Decided
	if fresh {
		var wait time.Duration
		if facts, wait = r.identify(ctx, c); wait > 0 {
			return Decision{Verdict: Later, After: wait}, nil
		}
		if r.Tombstones.has(r.StreamName(&facts, c.File)) {
			return Decision{Verdict: Excluded, Exclusion: Exclusion{Why: Forgotten}}, nil
		}
	} else if facts.Stream.Cwd == "" || c.From != c.Prev && c.From.Offset == 0 {
		r.learnCwd(&facts, c)
	}
	named := facts
	named.Stream.SessionID = r.StreamName(&facts, c.File)
	r.History.learn(&named)
	t := r.target(&facts)
	if t.verdict != Take {
		return Decision{Verdict: t.verdict, Exclusion: t.exclusion}, nil
	}
	if wait := r.recognize(&facts, &t.policy, c.File.ID); fresh && wait > 0 {
		return Decision{Verdict: Later, After: wait}, nil
	}
	if fresh {
		facts.Stream.SessionID = r.claim(c.File, facts.Stream.Parent)
		if t.namedByProject() {
			facts.SentBefore = sentBefore(t.policy, facts.Stream.SessionID, c.File.Path)
		}
	}
	changed := facts.Dest != "" && facts.Dest != t.dest || tookPlain(&facts) && r.destinations.SpeaksExtension(facts.Dest)
	if changed {
		if c.From == c.Prev || c.From.Offset != 0 {
			return Decision{Verdict: Reread}, nil
		}
		facts.Withheld, facts.Plain, facts.SentBefore = 0, false, 0
	}
	facts.Dest = t.dest
	facts.Stream.MaxEntries = r.maxEntries(&t)
	if err := r.destinations.Open(t.dest); err != nil {
		r.advice.set(facts.Stream.Cwd, err.Error(), "correct server_url")
		return Decision{Verdict: Later}, nil // the problem concerns this file only, not the others of its round
	}
	return Decision{Facts: facts, New: fresh, DestinationChanged: changed}, nil
}

// tookPlain reports whether a server took lines of a file as a plain one. Once the server speaks the extension it gets
// everything again, with what the plain protocol could not carry.
func tookPlain(f *state.Routing) bool { return f.Plain || f.Withheld > 0 }

// maxEntries returns the largest number of entries in a request: the project's setting, else the user's.
func (r *Router) maxEntries(t *target) int {
	if t.policy.Dir != "" && t.policy.MaxEntries > 0 {
		return t.policy.MaxEntries
	}
	return r.rules.Load().MaxEntries
}
