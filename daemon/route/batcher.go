package route

import (
	"bytes"

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
