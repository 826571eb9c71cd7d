package lines

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/ccship/ccship/server"
)

const (
	// blockSize is how many bytes of lines a block should have: larger ones compress a little better, and reading one line
	// of them costs more.
	blockSize = 160 << 10
	// window is how far back a frame refers.
	window = 512 << 10
	// encoders is how many blocks are packed at once at most: each encoder has tables of 5 MB.
	encoders = 8
)

var (
	// errDamaged is for a block that is not as it was built.
	errDamaged = errors.New("the block is damaged")
	errLines   = errors.New("a block has lines, ascending, of known kinds")
)

// Line is one line of a transcript, without its newline.
type Line struct {
	Index    int64
	Received int64 // Unix microseconds; 0 unknown
	Kind     uint8
	Raw      []byte
	Cut      int64 // bytes behind Raw that were not read
}

// Block is lines of one generation. They may have gaps. It does not change once it is built.
type Block struct {
	First, Last int64 // its first and its last line
	Lines       int64
	RawBytes    int64 // of the lines, without newlines
	SHA256      []byte
	Header      []byte // what the lines are
	Data        []byte // their bytes, one after the other, as a zstd frame
}

// Away says that a block's data is kept elsewhere, and was not loaded.
func (b *Block) Away() bool { return len(b.Data) == 0 && b.RawBytes > 0 }

// codec builds and opens blocks. Safe for concurrent use.
type codec struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
	buffers sync.Pool // of *[]byte
}

// NewCodec returns a codec. It has no goroutines and needs no closing.
func NewCodec() (*codec, error) {
	// The next level makes blocks a fortieth smaller, for twice the time. Literals are packed wherever that saves a byte.
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithWindowSize(window),
		zstd.WithAllLitEntropyCompression(true),
		zstd.WithEncoderConcurrency(min(encoders, runtime.GOMAXPROCS(0))),
		zstd.WithEncoderCRC(false)) // the block's hash is stronger
	if err != nil {
		return nil, fmt.Errorf("make block encoder: %w", err)
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, fmt.Errorf("make block decoder: %w", err)
	}
	return &codec{encoder: e, decoder: d, buffers: sync.Pool{New: func() any { return new([]byte) }}}, nil
}

// Build packs lines, which must ascend.
func (c *codec) Build(lines []Line) (Block, error) {
	if len(lines) == 0 {
		return Block{}, errLines
	}
	buf := c.buffers.Get().(*[]byte)
	defer c.buffers.Put(buf)
	raw, last := (*buf)[:0], lines[0].Index-1
	entries := make([]entry, 0, len(lines))
	for _, l := range lines {
		if l.Index <= last || l.Index < 0 || l.Kind >= kinds {
			return Block{}, errLines
		}
		raw, last = append(raw, l.Raw...), l.Index
		entries = append(entries, entry{l.Index, l.Received, l.Kind, int64(len(l.Raw))})
	}
	*buf = raw
	packed := c.buffers.Get().(*[]byte)
	defer c.buffers.Put(packed)
	*packed = c.encoder.EncodeAll(raw, (*packed)[:0])
	b := Block{First: lines[0].Index, Last: last, Lines: int64(len(lines)), RawBytes: int64(len(raw)),
		Header: header(entries), Data: bytes.Clone(*packed)} // a block may wait in memory: without what was reserved
	b.SHA256 = b.sum()
	return b, nil
}

// sum returns the hash of everything else in a block.
func (b *Block) sum() []byte {
	h := sha256.New()
	var n []byte
	for _, x := range []int64{b.First, b.Last, b.Lines, b.RawBytes, int64(len(b.Header))} {
		n = binary.LittleEndian.AppendUint64(n, uint64(x))
	}
	h.Write(n)
	h.Write(b.Header)
	h.Write(b.Data)
	return h.Sum(nil)
}

// content is an opened block.
type content struct {
	Entries []entry
	raw     []byte
	buf     *[]byte
	ends    []int64
	cut     []int64 // bytes of each that were not read behind its end; nil: none
}

// Open proves a block and unpacks it. ErrDamaged says that it is not what was built. The caller releases the content.
func (c *codec) Open(b *Block) (*content, error) {
	if !bytes.Equal(b.sum(), b.SHA256) {
		return nil, errDamaged
	}
	entries, err := b.Index()
	if err != nil {
		return nil, err
	}
	buf := c.buffers.Get().(*[]byte)
	if int64(cap(*buf)) < b.RawBytes {
		*buf = make([]byte, 0, b.RawBytes)
	}
	raw, err := c.decoder.DecodeAll(b.Data, (*buf)[:0:b.RawBytes])
	if err != nil || int64(len(raw)) != b.RawBytes {
		c.buffers.Put(buf)
		return nil, errDamaged
	}
	x := &content{Entries: entries, raw: raw, buf: buf, ends: make([]int64, len(entries))}
	end := int64(0)
	for i, e := range entries {
		end += e.Size
		x.ends[i] = end
	}
	return x, nil
}

// huge is from how many bytes of lines on a block is unpacked piece by piece if only heads of lines are read.
const huge = 4 << 20

// OpenHeads is Open for a reader of the lines of a span, who may want no more than their heads.
func (c *codec) OpenHeads(b *Block, span server.Span) (*content, error) {
	if span.Most == 0 || b.RawBytes < huge && span.Skip == 0 {
		return c.Open(b)
	}
	if !bytes.Equal(b.sum(), b.SHA256) {
		return nil, errDamaged
	}
	entries, err := b.Index()
	if err != nil {
		return nil, err
	}
	d, err := zstd.NewReader(bytes.NewReader(b.Data), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, errDamaged
	}
	defer d.Close()
	x := &content{Entries: entries, ends: make([]int64, len(entries)), cut: make([]int64, len(entries))}
	end := int64(0)
	for i, e := range entries {
		skip, n := span.Part(e.Size)
		end += n
		x.ends[i], x.cut[i] = end, e.Size-skip-n
	}
	x.raw = make([]byte, end)
	at := int64(0)
	for i, e := range entries {
		skip, _ := span.Part(e.Size)
		_, err := io.CopyN(io.Discard, d, skip)
		if err == nil {
			_, err = io.ReadFull(d, x.raw[at:x.ends[i]])
		}
		if err == nil {
			_, err = io.CopyN(io.Discard, d, x.cut[i])
		}
		if err != nil {
			return nil, errDamaged
		}
		at = x.ends[i]
	}
	return x, nil
}

// Line returns the i-th line. Its bytes are valid until the content is released.
func (x *content) Line(i int) Line {
	e := x.Entries[i]
	from := int64(0)
	if i > 0 {
		from = x.ends[i-1]
	}
	l := Line{e.Index, e.Received, e.Kind, x.raw[from:x.ends[i]:x.ends[i]], 0}
	if x.cut != nil {
		l.Cut = x.cut[i]
	}
	return l
}

// Release ends the use of a content.
func (c *codec) Release(x *content) {
	const most = 4 << 20 // a buffer of a huge line is not kept
	if x.buf != nil && cap(*x.buf) <= most {
		c.buffers.Put(x.buf)
	}
	x.raw, x.buf = nil, nil
}

// cutBlock cuts ascending lines into as many pieces as give blocks of about Size, all about as large.
func cutBlock(lines []Line) [][]Line {
	total := 0
	for _, l := range lines {
		total += len(l.Raw)
	}
	pieces := max(1, (total+blockSize/2)/blockSize)
	var out [][]Line
	from, done, sum := 0, 0, 0
	for i, l := range lines {
		// A line that would overshoot the piece by more than leaving it out lacks begins the next one.
		end := (len(out) + 1) * total / pieces
		if i > from && sum+len(l.Raw)-end > end-sum && sum > done {
			out, from, done = append(out, lines[from:i]), i, sum
		}
		sum += len(l.Raw)
	}
	if from < len(lines) {
		out = append(out, lines[from:])
	}
	return out
}

// version is that of the header's format, its first byte.
const version = 1

// entry is what a header says about a line.
type entry struct {
	Index    int64
	Received int64 // Unix microseconds
	Kind     uint8
	Size     int64 // of its bytes
}

// kinds is how many kinds of lines a header can distinguish.
const kinds = 4

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// header writes what ascending lines are: their number, and for each the distance from the line before it, its kind,
// its time of arrival where that differs from the one before, and its size. A checksum ends it.
func header(lines []entry) []byte {
	out := make([]byte, 0, 16+4*len(lines))
	out = append(out, version)
	out = binary.AppendUvarint(out, uint64(len(lines)))
	next, received := lines[0].Index, int64(0)
	for _, l := range lines {
		word := uint64(l.Index-next)<<3 | uint64(l.Kind)<<1
		if l.Received != received {
			word |= 1
		}
		out = binary.AppendUvarint(out, word)
		if l.Received != received {
			out = binary.AppendVarint(out, l.Received-received)
		}
		out = binary.AppendUvarint(out, uint64(l.Size))
		next, received = l.Index+1, l.Received
	}
	return binary.LittleEndian.AppendUint32(out, crc32.Checksum(out, castagnoli()))
}

// Index reads the header: the lines of the block, ascending. An ErrDamaged says that it is not what was written.
func (b *Block) Index() ([]entry, error) {
	body := len(b.Header) - crc32.Size
	if body < 1 || b.Header[0] != version ||
		crc32.Checksum(b.Header[:body], castagnoli()) != binary.LittleEndian.Uint32(b.Header[body:]) {
		return nil, errDamaged
	}
	r := reader{rest: b.Header[1:body]}
	n := r.uvarint()
	if n == 0 || n > uint64(len(r.rest)) || n != uint64(b.Lines) {
		return nil, errDamaged
	}
	out := make([]entry, 0, n)
	next, received, total := b.First, int64(0), int64(0)
	for range n {
		word := r.uvarint()
		if word&1 != 0 {
			received += r.varint()
		}
		e := entry{Index: next + int64(word>>3), Received: received, Kind: uint8(word>>1) % kinds, Size: int64(r.uvarint())}
		if e.Index < next || e.Size < 0 || e.Size > b.RawBytes {
			return nil, errDamaged
		}
		out, next, total = append(out, e), e.Index+1, total+e.Size
	}
	if r.failed || len(r.rest) > 0 || total != b.RawBytes || next != b.Last+1 {
		return nil, errDamaged
	}
	return out, nil
}

// reader reads numbers.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) uvarint() uint64 {
	x, n := binary.Uvarint(r.rest)
	return took(r, x, n)
}

func (r *reader) varint() int64 {
	x, n := binary.Varint(r.rest)
	return took(r, x, n)
}

func took[T int64 | uint64](r *reader, x T, n int) T {
	if n <= 0 {
		r.failed, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return x
}
