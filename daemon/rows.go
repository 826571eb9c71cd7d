package daemon

import (
	"bytes"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// rowBytes is how many uncompressed bytes end a row. A row is what a retry repeats and what a crash re-sends, so it
// is well below the 4 MiB of a request; compression gains little above it.
const rowBytes = 512 << 10

// rows turns the lines of chunks into outbox batches: consecutive entries of one kind, spliced and compressed. One
// rows serves one goroutine and chunk after chunk; the batches it returns are valid until release.
type rows struct {
	packer   *outbox.Packer
	raw      []byte // entries of the open batch, joined by commas
	frames   []byte // compressed frames of the closed ones; they point into it
	open     outbox.Batch
	batches  []outbox.Batch         // of this chunk
	exclude  map[string]bool        // record types left out
	omits    func(line []byte) bool // says which lines are left out besides; nil: none
	max      int                    // entries a batch
	from     outbox.Position        // where the open batch starts
	at       outbox.Position        // behind the last line seen
	facts    *state.Facts
	gen      uint32
	tally    tally
	sentTill int64 // lines below this were sent before ccship came
}

// tally counts what was seen in a chunk, for the daemon's counters.
type tally struct {
	malformed, oversize, excluded int64
	compaction                    bool // a line may be a compaction's record
}

// build returns the batches of a chunk. facts is that of the chunk's file, RewoundTo already set for its generation.
func (r *rows) build(c *tail.Chunk, facts *state.Facts) []outbox.Batch {
	r.reset(c, facts)
	lines := c.Lines
	if c.Sealed {
		_, lines = r.cutLine(lines)
	}
	for len(lines) > 0 {
		var line []byte
		index := r.at.Line
		line, lines = r.cutLine(lines)
		r.add(line, index)
	}
	if c.Oversize != nil {
		r.addOversize(c)
	}
	r.close()
	if c.Provisional != nil {
		r.addProvisional(c.Provisional)
	}
	if len(r.batches) == 0 && (c.Sealed || c.From != c.Prev) {
		r.mark()
	}
	return r.batches
}

func (r *rows) reset(c *tail.Chunk, facts *state.Facts) {
	r.facts, r.gen = facts, c.To.Generation
	r.raw, r.batches = r.raw[:0], nil
	r.at = outbox.Position{Offset: c.From.Offset, Line: c.From.Line}
	r.from, r.open, r.tally = r.at, outbox.Batch{}, tally{}
	r.max = facts.Stream.MaxEntries
	if r.max <= 0 {
		r.max = outbox.DefaultMaxEntries
	}
	r.sentTill = 0
	if r.gen == 0 {
		r.sentTill = facts.SentBefore
	}
}

// cutLine takes the first line off lines and moves past it.
func (r *rows) cutLine(lines []byte) (line, rest []byte) {
	n := bytes.IndexByte(lines, '\n')
	r.at.Offset += int64(n + 1)
	r.at.Line++
	return lines[:n], lines[n+1:]
}

// add queues one line. r.at is already behind it.
func (r *rows) add(line []byte, index int64) {
	l := transcript.Scan(line)
	switch {
	case l.Shape == transcript.Malformed:
		r.tally.malformed++
	case string(l.Type) == "system" && bytes.Contains(line, []byte("compact_boundary")):
		r.tally.compaction = true
	}
	if index < r.sentTill || r.excluded(&l) || r.omits != nil && r.omits(line) {
		r.tally.excluded++
		return
	}
	if l.Shape != transcript.Object {
		r.begin(outbox.Opaque, index, len(line)*4/3)
		r.raw = transcript.AppendOpaque(r.raw, line, index)
		r.count()
		return
	}
	r.begin(outbox.Objects, index, len(line))
	if l.Start > 0 || l.End < len(line) {
		r.open.Edges = append(r.open.Edges, outbox.Edge{
			Line:   index,
			Before: bytes.Clone(line[:l.Start]),
			After:  bytes.Clone(line[l.End:]),
		})
	}
	r.raw = transcript.AppendEntry(r.raw, line, l, index)
	r.count()
}

func (r *rows) excluded(l *transcript.Line) bool {
	return len(r.exclude) > 0 && l.Shape == transcript.Object && r.exclude[string(l.Type)]
}

// begin makes room for an entry of the given kind and size: in the open batch if it fits there, else in a new one.
func (r *rows) begin(kind outbox.Kind, index int64, size int) {
	if r.open.Entries > 0 && (r.open.Kind != kind || r.open.Entries >= r.max || len(r.raw)+size > rowBytes) {
		behind := r.at
		r.at = r.open.To
		r.close()
		r.at = behind
	}
	r.open.Kind = kind
	if r.open.Entries > 0 {
		r.raw = append(r.raw, ',')
	}
}

func (r *rows) count() {
	r.open.Entries++
	r.open.To = r.at
}

// close compresses the open batch, if it has entries. The next one starts where it ends.
func (r *rows) close() {
	if r.open.Entries == 0 {
		return
	}
	r.open.Generation, r.open.RewoundTo = r.gen, r.facts.RewoundTo
	r.open.From, r.open.To = r.from, r.at
	r.open.Raw = int64(len(r.raw))
	start := len(r.frames)
	r.frames = r.packer.Pack(r.frames, r.raw)
	r.open.Frame = r.frames[start:len(r.frames):len(r.frames)]
	r.batches = append(r.batches, r.open)
	r.open, r.raw, r.from = outbox.Batch{}, r.raw[:0], r.at
}

func (r *rows) addOversize(c *tail.Chunk) {
	r.close()
	index := r.at.Line
	r.at = outbox.Position{Offset: c.To.Offset, Line: c.To.Line}
	r.tally.oversize++
	r.begin(outbox.Opaque, index, 0)
	r.raw = transcript.AppendOversize(r.raw, index, c.Oversize.Offset, c.Oversize.Length, c.Oversize.SHA256)
	r.count()
}

// addProvisional queues a last line that has no newline yet, as a batch of its own.
func (r *rows) addProvisional(line []byte) {
	index := r.at.Line
	r.at.Offset += int64(len(line))
	r.at.Line++
	r.add(line, index)
	r.close()
	if n := len(r.batches); n > 0 && r.batches[n-1].To == r.at {
		r.batches[n-1].NoNewline = true
	}
}

// mark queues a batch without entries: a rewind that nothing follows, or the newline of a line already queued.
func (r *rows) mark() {
	r.batches = append(r.batches, outbox.Batch{
		Kind: outbox.Marker, Generation: r.gen, RewoundTo: r.facts.RewoundTo, From: r.from, To: r.at,
	})
}

// release ends the life of all batches returned so far, and drops buffers that one huge line made large.
func (r *rows) release() {
	const keep = 4 << 20
	if cap(r.raw) > keep {
		r.raw = nil
	}
	if r.frames = r.frames[:0]; cap(r.frames) > keep {
		r.frames = nil
	}
	r.batches, r.facts = nil, nil
}
