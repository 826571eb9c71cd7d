package tail

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"sync"
	"time"
)

// Cursor is the position where reading of a file stopped. Comparable: equal cursors are the same position in the same
// bytes.
type Cursor struct {
	Offset     int64  // bytes read; always the start of a line
	Line       int64  // lines read, blank ones counted; the 0-based number of the next line
	Generation uint32 // raised by each rewind, and when all is read again
	Anchor     uint64 // hash of the up to AnchorSize bytes before Offset; 0 at Offset 0
	Mark       int64  // offset of the last Mark at or before Offset; 0 when there is none
	Segment    uint64 // hash of the bytes from Mark to Offset
}

// AnchorSize is the largest number of bytes that an Anchor covers.
const AnchorSize = 4 << 10

// Mark is one sparse prefix hash: proof of the bytes since the Mark before it, at a line start. Marks of a file are
// append-only, ascending, never beyond its cursor, and at most 128 KiB apart unless a single line is longer.
type Mark struct {
	Offset int64
	Line   int64
	Hash   uint64 // of the bytes from the previous Mark's Offset (0 for the first) to Offset
}

const (
	// coarseTick is the coarsest clock of a file system: FAT dates by two seconds.
	coarseTick = 2 * time.Second
	// fineTick is more than the clocks of the others take: the kernel's timer ticks at least a hundred times a second.
	fineTick = 100 * time.Millisecond
)

// settleTime returns how old a change time must be before an unchanged one proves unchanged bytes: another write within
// the same tick of the clock would leave it as it is. A time with a fraction of a millisecond comes from a fine clock.
func (s Stat) settleTime() time.Duration {
	if ownChangeTime && s.ChangeTime%int64(time.Millisecond) != 0 {
		return fineTick
	}
	return coarseTick
}

// fileClocks are the clocks of file systems, as far as change times tell of them. That of a file server may be behind
// this machine's: what changed there a moment ago seems old. Safe for concurrent use.
type fileClocks struct {
	mu    sync.Mutex
	began map[uint64]int64 // by device: what its clock showed at least when the Tailer was made
}

// ago returns how long ago one of a stat's times is at least, by the clock that dated it: from the newest change time
// seen on its device, and never more than by this machine's clock.
func (t *Tailer) ago(s Stat, at int64) time.Duration {
	now, c := int64(t.now()), &t.clocks
	c.mu.Lock()
	began, known := c.began[s.Device]
	if !known || began < s.ChangeTime-now {
		began = s.ChangeTime - now
		if c.began == nil {
			c.began = map[uint64]int64{}
		}
		c.began[s.Device] = began
	}
	c.mu.Unlock()
	return min(time.Duration(began+now-at), t.wall().Sub(time.Unix(0, at)))
}

// age returns how long ago a stat changed at least.
func (t *Tailer) age(s Stat) time.Duration { return t.ago(s, s.ChangeTime) }

// since returns when, in the Tailer's time, one of the times of a stat was.
func (t *Tailer) since(s Stat, at int64) time.Duration { return t.now() - max(0, t.ago(s, at)) }

// Prefix is the beginning of a file, read by the caller line by line: it makes the cursor and the marks with which
// reading goes on behind it, as if the tailer had read it. The zero Prefix is empty.
type Prefix struct {
	walk   prefixWalker
	anchor []byte // the last bytes, at most AnchorSize
}

// Add appends whole lines, each with its newline.
func (p *Prefix) Add(lines []byte) {
	if p.walk.offset == 0 {
		p.walk.Start(Cursor{}, nil)
	}
	p.walk.Add(lines)
	p.anchor = append(p.anchor, lines[max(0, len(lines)-AnchorSize):]...)
	p.anchor = p.anchor[max(0, len(p.anchor)-AnchorSize):]
}

// Cursor returns the position behind what was added, in a generation.
func (p *Prefix) Cursor(generation uint32) Cursor {
	c := p.walk.Cursor(generation)
	c.Anchor = hashOf(p.anchor)
	return c
}

// Marks returns the marks of what was added. The caller does not change them.
func (p *Prefix) Marks() []Mark { return p.walk.marks }

// Line is one line of a file as it is delivered.
type Line struct {
	Index, Offset int64
	Length        int64    // without the newline
	Newline       bool     // false only of a last line without one
	Oversize      bool     // longer than the cap: only its digest is delivered
	Raw           []byte   // without the newline, valid until the next line; nil of an oversize one, unless they are kept
	Whole         []byte   // Raw with the newline, if there is one
	SHA256        [32]byte // of an oversize one, without a newline
	Hash          [32]byte // of an oversize one, with a newline
}

// LineReader reads a file line by line, by the rule by which it is delivered.
type LineReader struct {
	Cap  int64 // of a line without its newline, in bytes
	Keep bool  // keep the bytes of oversize lines

	r             *bufio.Reader
	index, offset int64
	long          []byte // of a line that does not fit into the buffer
}

// NewLineReader reads lines of up to limit bytes. size is about how many bytes there are to read.
func NewLineReader(r io.Reader, limit, size int64) *LineReader {
	const most = 256 << 10 // most files are small
	return &LineReader{Cap: limit, r: bufio.NewReaderSize(r, int(min(size+1, most)))}
}

// Next returns the next line, or io.EOF behind the last.
func (r *LineReader) Next() (Line, error) {
	l := Line{Index: r.index, Offset: r.offset}
	r.long = r.long[:0]
	var sum hash.Hash // nil up to the cap
	for more := true; more; {
		part, err := r.r.ReadSlice('\n')
		more = errors.Is(err, bufio.ErrBufferFull)
		whole := part
		switch {
		case err == nil:
			l.Newline, part = true, part[:len(part)-1]
		case !more && (!errors.Is(err, io.EOF) || l.Length+int64(len(part)) == 0):
			return Line{}, err
		}
		l.Length += int64(len(part))
		if overCap(l.Length, r.Cap) && sum == nil {
			sum = sha256.New()
			sum.Write(r.long)
		}
		if sum != nil {
			sum.Write(part)
		}
		switch {
		case sum != nil && !r.Keep:
		case !more && len(r.long) == 0:
			l.Whole = whole // all of it is in the buffer
		default:
			r.long = append(r.long, whole...)
			l.Whole = r.long
		}
	}
	r.index++
	r.offset += l.Length
	if l.Newline {
		r.offset++
	}
	if sum != nil {
		if l.Oversize = true; !r.Keep {
			l.Whole = nil
		}
		sum.Sum(l.SHA256[:0])
		sum.Write([]byte{'\n'})
		sum.Sum(l.Hash[:0])
	}
	l.Raw = l.Whole[:min(l.Length, int64(len(l.Whole)))]
	return l, nil
}

// overCap reports whether a line of so many bytes, without its newline, is longer than the cap.
func overCap(length, limit int64) bool { return length > limit }
