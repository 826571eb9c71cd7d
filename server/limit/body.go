package limit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/ccship/ccship/server/wire"
)

const (
	// smallBody is how much memory any request may take; larger ones wait for one of largeBodies tokens, so that memory
	// stays bounded whatever arrives at once.
	smallBody   = 8 << 20
	largeBodies = 2
	pieceOfBody = 1 << 20
	// maxWindow is the largest window of a zstd frame; RFC 8878 recommends 8 MiB.
	maxWindow = 8 << 20
)

// Bodies reads and decompresses request bodies, and reuses its buffers and decoders. Safe for concurrent use.
type Bodies struct {
	max      int64
	patience time.Duration
	large    chan struct{} // one token for each body beyond smallBody

	zstd, gzip, buffers sync.Pool
}

// NewBodies accepts bodies of at most max bytes, decompressed. A body may take patience; after that its average rate
// must reach minRate.
func NewBodies(max int64, patience time.Duration) *Bodies {
	return &Bodies{max: max, patience: patience, large: make(chan struct{}, largeBodies)}
}

// Body is a request's body, decompressed. Its bytes are valid until Release.
type Body struct {
	bytes.Buffer
	from *Bodies
	done []func()
}

// Release returns the body's resources. A large buffer is not kept: its memory is freed before its token.
func (b *Body) Release() {
	keep := b.Cap() <= smallBody
	if !keep {
		b.Buffer = bytes.Buffer{}
	}
	for _, f := range b.done {
		f()
	}
	b.done = nil
	if keep {
		b.Reset()
		b.from.buffers.Put(b)
	}
}

var errTooLarge = errors.New("body too large")

// Read reads and decompresses a whole body: at most max bytes and at most what all bodies may take, whatever its
// headers say. The caller releases it unless there is an error, which is a *wire.RefusalError or the context's.
func (b *Bodies) Read(w http.ResponseWriter, r *http.Request, max int64) (*Body, error) {
	plain := newSource(w, r, min(max, b.max), b.patience)
	encoding := strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding")))
	src, done, err := b.decoder(encoding, plain)
	if err != nil {
		return nil, plain.blame(err, encoding)
	}
	defer done()
	buf, ok := b.buffers.Get().(*Body)
	if !ok {
		buf = &Body{from: b}
	}
	if err := b.fill(r.Context(), buf, src, plain.max); err != nil {
		buf.Release()
		return nil, plain.blame(err, encoding)
	}
	return buf, nil
}

// fill copies src into buf, and takes a token when it exceeds smallBody.
func (b *Bodies) fill(ctx context.Context, buf *Body, src io.Reader, max int64) error {
	n, err := io.Copy(&buf.Buffer, io.LimitReader(src, smallBody+1))
	if err != nil {
		return err
	}
	if n > smallBody && n <= max {
		select {
		case b.large <- struct{}{}:
			buf.done = append(buf.done, func() {
				debug.FreeOSMemory() // otherwise the next body adds to memory that is only garbage
				<-b.large
			})
		case <-ctx.Done():
			return ctx.Err()
		}
		return fillRest(buf, src, max-n)
	}
	if n > max {
		return errTooLarge
	}
	return nil
}

// fillRest appends at most max bytes, in pieces: a buffer that keeps doubling would leave as much garbage as it holds,
// and most bodies of that size are refused in the end.
func fillRest(buf *Body, src io.Reader, max int64) error {
	var p pieces
	n, err := io.Copy(&p, io.LimitReader(src, max+1))
	if err != nil {
		return err
	}
	if n > max {
		return errTooLarge
	}
	buf.Grow(int(n))
	for i := range p {
		buf.Write(p[i])
		p[i] = nil
	}
	return nil
}

// pieces appends bytes without moving earlier ones.
type pieces [][]byte

// Write appends.
func (p *pieces) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		last := len(*p) - 1
		if last < 0 || len((*p)[last]) == cap((*p)[last]) {
			*p, last = append(*p, make([]byte, 0, pieceOfBody)), last+1
		}
		piece := &(*p)[last]
		m := min(len(b), cap(*piece)-len(*piece))
		*piece, b = append(*piece, b[:m]...), b[m:]
	}
	return n, nil
}

// decoder decodes the content encoding. done releases the decoder.
func (b *Bodies) decoder(encoding string, src io.Reader) (out io.Reader, done func(), err error) {
	switch encoding {
	case "", "identity":
		return src, func() {}, nil
	case "zstd":
		return b.zstdDecoder(src)
	case "gzip", "x-gzip":
		return b.gzipDecoder(src)
	}
	return nil, nil, wire.Refuse(http.StatusUnsupportedMediaType, "unsupported_encoding",
		fmt.Sprintf("Content-Encoding %q; this server takes zstd, gzip and identity", encoding))
}

func (b *Bodies) zstdDecoder(src io.Reader) (io.Reader, func(), error) {
	d, ok := b.zstd.Get().(*zstd.Decoder)
	if !ok {
		var err error
		// Concurrency 1 starts no goroutine, so that a decoder the pool drops leaks nothing.
		d, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, nil, fmt.Errorf("make zstd decoder: %w", err)
		}
	}
	if err := d.Reset(src); err != nil {
		return nil, nil, err
	}
	return d, func() {
		if d.Reset(nil) == nil {
			b.zstd.Put(d)
		}
	}, nil
}

func (b *Bodies) gzipDecoder(src io.Reader) (io.Reader, func(), error) {
	d, ok := b.gzip.Get().(*gzip.Reader)
	if !ok {
		d = new(gzip.Reader)
	}
	if err := d.Reset(src); err != nil { // reads the header
		return nil, nil, err
	}
	return d, func() { b.gzip.Put(d) }, nil
}
