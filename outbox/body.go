package outbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
)

// framePart is a piece of a body: bytes as they are, or a row still to be unpacked.
type framePart struct {
	Literal []byte
	Packed  *Batch
}

// Length returns how many bytes it adds to a body.
func (p framePart) Length() int64 {
	if p.Packed != nil {
		return p.Packed.Raw
	}
	return int64(len(p.Literal))
}

// small is up to how many bytes a body is put together before it is sent. net/http sends a body that is in memory in
// one write with the headers, any other one part by part. A larger one would only be garbage: nobody says when it was
// read.
const small = 8 << 10

// frameBody reads parts one after the other. damaged is set when a row cannot be unpacked.
func frameBody(parts []framePart, pool *codecs, damaged *atomic.Pointer[damageError]) io.ReadCloser {
	b := &body{parts: parts, pool: pool, damaged: damaged}
	var length int64
	for _, p := range parts {
		length += p.Length()
	}
	if length > small {
		return b
	}
	defer func() { _ = b.Close() }()
	all := bytes.NewBuffer(make([]byte, 0, length+bytes.MinRead))
	if _, err := all.ReadFrom(b); err != nil {
		return io.NopCloser(broken{err})
	}
	return io.NopCloser(bytes.NewReader(all.Bytes()))
}

// broken is a body that cannot be read.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// body reads parts one after the other and unpacks rows on the way, so that a request needs the memory of one row.
type body struct {
	parts   []framePart // those not begun
	pool    *codecs
	damaged *atomic.Pointer[damageError]

	// The transport may close a body while it is being read.
	mu      sync.Mutex
	current io.Reader // of the part begun; nil between parts
	left    int64     // bytes that current still has to give
	seq     uint64    // of the row being unpacked
	whole   *[]byte   // pooled buffer for rows unpacked in one piece; nil: none was
	stream  *zstd.Decoder
	closed  bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, errors.New("read of a closed request body")
	}
	for {
		if b.current == nil {
			if len(b.parts) == 0 {
				return 0, io.EOF
			}
			if err := b.begin(); err != nil {
				return 0, b.fail(err)
			}
		}
		n, err := b.current.Read(p)
		if b.left -= int64(n); b.left < 0 {
			return 0, b.fail(errLength)
		}
		if err == io.EOF {
			if b.left != 0 {
				return 0, b.fail(errLength)
			}
			b.end()
		} else if err != nil {
			return 0, b.fail(err)
		}
		if n > 0 {
			return n, nil
		}
	}
}

// begin opens the next part.
func (b *body) begin() error {
	p := b.parts[0]
	b.parts, b.left = b.parts[1:], p.Length()
	if p.Packed == nil {
		b.current = bytes.NewReader(p.Literal)
		return nil
	}
	b.seq = p.Packed.Seq
	if p.Packed.Raw <= wholeFrame {
		if b.whole == nil {
			b.whole = b.pool.row()
		}
		out, err := b.pool.Unpack((*b.whole)[:0], p.Packed)
		if err != nil {
			return err
		}
		*b.whole, b.current = out, bytes.NewReader(out)
		return nil
	}
	b.stream = b.pool.decoder()
	b.current = b.stream
	return b.stream.Reset(bytes.NewReader(p.Packed.Frame))
}

// end closes the part that was read.
func (b *body) end() {
	b.current = nil
	if b.stream != nil {
		b.pool.release(b.stream)
		b.stream = nil
	}
}

func (b *body) fail(err error) error {
	var d *damageError
	if !errors.As(err, &d) {
		d = &damageError{Seq: b.seq, Err: err}
	}
	b.damaged.Store(d)
	return d
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.end()
	if b.whole != nil {
		b.pool.rows.Put(b.whole) // nothing is read from a closed body
		b.whole = nil
	}
	return nil
}

const (
	// frameWindow bounds the memory of an encoder and a decoder of our frames. Rows are rarely larger.
	frameWindow = 512 << 10
	// wholeFrame is the limit in bytes up to which a row is unpacked at once; larger ones are streamed.
	wholeFrame = 1 << 20
	// frameUnpackLimit exceeds every row: the longest line in base64 with its JSON frame.
	frameUnpackLimit = 256 << 20
)

// Packer compresses the entries of a batch, joined by commas. Not safe for concurrent use: one for each goroutine.
type Packer struct{ encoder *zstd.Encoder }

// NewPacker returns a packer. It holds about 1.5 MiB after its first use.
func NewPacker() *Packer {
	// No checksum: queue and transport have their own. The options are constants, so an error is a bug.
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(frameWindow), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(fmt.Sprintf("zstd options: %v", err))
	}
	return &Packer{encoder: e}
}

// Pack appends raw to dst as one zstd frame, and returns the longer dst.
func (p *Packer) Pack(dst, raw []byte) []byte {
	if len(raw) > wholeFrame {
		// One growth instead of a dozen, each of which would copy megabytes.
		dst = slices.Grow(dst, len(raw)+len(raw)>>10+64)
	}
	return p.encoder.EncodeAll(raw, dst)
}

// codecs pools encoders and decoders for many goroutines. Its zero value is ready.
type codecs struct {
	packers  sync.Pool // *Packer
	decoders sync.Pool // *zstd.Decoder
	rows     sync.Pool // *[]byte: what rows are unpacked into, at most Whole
}

// Pack is Packer.Pack.
func (c *codecs) Pack(dst, raw []byte) []byte {
	p, ok := c.packers.Get().(*Packer)
	if !ok {
		p = NewPacker()
	}
	defer c.packers.Put(p)
	return p.Pack(dst, raw)
}

// row returns a pooled buffer for what a row holds.
func (c *codecs) row() *[]byte {
	if b, ok := c.rows.Get().(*[]byte); ok {
		return b
	}
	return new([]byte)
}

// decoder returns a pooled decoder. It uses no goroutines, so one that is never released costs nothing.
func (c *codecs) decoder() *zstd.Decoder {
	if d, ok := c.decoders.Get().(*zstd.Decoder); ok {
		return d
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(frameUnpackLimit))
	if err != nil {
		panic(fmt.Sprintf("zstd options: %v", err))
	}
	return d
}

func (c *codecs) release(d *zstd.Decoder) {
	if d.Reset(nil) == nil {
		c.decoders.Put(d)
	}
}

// damageError is the error of a row whose content does not match its header.
type damageError struct {
	Seq uint64
	Err error
}

func (d *damageError) Error() string { return fmt.Sprintf("unpack batch %d: %v", d.Seq, d.Err) }

// Unwrap returns what is wrong.
func (d *damageError) Unwrap() error { return d.Err }

// errLength means that a row holds more or less than its header says.
var errLength = errors.New("length differs from the header")

// Unpack appends what a row holds to dst. Its error is a *damageError.
func (c *codecs) Unpack(dst []byte, r *Batch) ([]byte, error) {
	d := c.decoder()
	defer c.release(d)
	start := len(dst)
	if r.Raw >= 0 && r.Raw <= frameUnpackLimit {
		dst = slices.Grow(dst, int(r.Raw))
	}
	out, err := d.DecodeAll(r.Frame, dst)
	if err == nil && int64(len(out)-start) != r.Raw {
		err = errLength
	}
	if err != nil {
		return dst[:start], &damageError{Seq: r.Seq, Err: err}
	}
	return out, nil
}

// First returns the first up to n bytes that a row holds, without unpacking the rest.
func (c *codecs) First(r *Batch, n int64) ([]byte, error) {
	d := c.decoder()
	defer c.release(d)
	if err := d.Reset(bytes.NewReader(r.Frame)); err != nil {
		return nil, &damageError{Seq: r.Seq, Err: err}
	}
	out, err := io.ReadAll(io.LimitReader(d, n))
	if err != nil {
		return nil, &damageError{Seq: r.Seq, Err: err}
	}
	return out, nil
}

// UnpackEntries returns the entries of a batch, from its zstd frame. An error means that the batch is damaged.
func UnpackEntries(frame []byte) ([][]byte, error) {
	raw, err := new(codecs).decoder().DecodeAll(frame, nil)
	if err != nil {
		return nil, fmt.Errorf("unpack batch: %w", err)
	}
	return splitEntries(raw)
}
