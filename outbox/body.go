package outbox

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
)

// part is a piece of a body: bytes as they are, or the entries of a batch still to be unpacked.
type part struct {
	literal []byte
	packed  *Batch
}

func (p part) length() int64 {
	if p.packed != nil {
		return p.packed.Raw
	}
	return int64(len(p.literal))
}

// body reads parts one after the other and unpacks batches on the way, so that a request needs the memory of one batch.
type body struct {
	parts   []part // those not begun
	codecs  *codecs
	damaged *atomic.Pointer[damage] // set when a batch cannot be unpacked

	// The transport may close a body while it is being read.
	mu      sync.Mutex
	current io.Reader // of the part begun; nil between parts
	left    int64     // bytes that current still has to give
	seq     uint64    // of the batch being unpacked
	whole   []byte    // buffer for rows unpacked in one piece
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
			return 0, b.fail(errRowLength)
		}
		if err == io.EOF {
			if b.left != 0 {
				return 0, b.fail(errRowLength)
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
	b.parts, b.left = b.parts[1:], p.length()
	if p.packed == nil {
		b.current = bytes.NewReader(p.literal)
		return nil
	}
	b.seq = p.packed.Seq
	if p.packed.Raw <= wholeRow {
		out, err := b.codecs.unpack(b.whole[:0], p.packed)
		if err != nil {
			return err
		}
		b.whole, b.current = out, bytes.NewReader(out)
		return nil
	}
	b.stream = b.codecs.decoder()
	b.current = b.stream
	return b.stream.Reset(bytes.NewReader(p.packed.Frame))
}

// end closes the part that was read.
func (b *body) end() {
	b.current = nil
	if b.stream != nil {
		b.codecs.release(b.stream)
		b.stream = nil
	}
}

func (b *body) fail(err error) error {
	var d *damage
	if !errors.As(err, &d) {
		d = &damage{seq: b.seq, err: err}
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
	return nil
}
