package outbox

import (
	"bytes"
	"errors"
	"io"
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
