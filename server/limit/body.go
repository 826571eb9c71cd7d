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
	max   int64
	large chan struct{} // one token for each body beyond smallBody

	zstd, gzip, buffers sync.Pool
}

// NewBodies accepts bodies of at most max bytes, decompressed.
func NewBodies(max int64) *Bodies {
	return &Bodies{max: max, large: make(chan struct{}, largeBodies)}
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
	plain := newSource(w, r, min(max, b.max))
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

// minRate is the average rate that a body must reach, in bytes per second as sent, once a server's Patience is over. A
// client that gives up after 30 s plus 1 s per MiB, as ccship does, is never slower.
const minRate = 8 << 10

// Paced returns next with a time limit for each body. A body may take patience from when it is first read; after that
// its average rate must reach minRate. The answer itself has no limit; what is left of a body after it, or of one that
// nobody reads, has patience too.
func Paced(next http.Handler, patience time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &pacedBody{ReadCloser: r.Body, control: http.NewResponseController(w), patience: patience}
		switch {
		case r.ContentLength == 0:
			p.until(time.Time{}) // the time for reading is not that for answering
		case r.Method == http.MethodGet || r.Method == http.MethodHead:
			p.until(time.Now().Add(patience)) // net/http reads it before an answer of some length
		default:
			r.Body = p
			defer func() { p.until(time.Now().Add(patience)) }()
		}
		next.ServeHTTP(w, r)
	})
}

// pacedBody is a body as it comes from the network. It ends when it comes too slowly.
type pacedBody struct {
	io.ReadCloser
	control  *http.ResponseController
	patience time.Duration
	began    time.Time
	n        int64
}

// until sets when reading fails; the zero time is never.
func (b *pacedBody) until(t time.Time) {
	_ = b.control.SetReadDeadline(t) // not every writer has deadlines (tests)
}

// Read returns the next piece while the average rate is high enough.
func (b *pacedBody) Read(p []byte) (int, error) {
	if b.began.IsZero() {
		b.began = time.Now()
	}
	b.until(b.began.Add(b.patience + time.Duration(b.n)*time.Second/minRate))
	n, err := b.ReadCloser.Read(p)
	if b.n += int64(n); err == io.EOF {
		b.until(time.Time{}) // what follows is ours
	}
	return n, err
}

// source is a body that ends when it is too large. It keeps the network's error, which a decoder may hide.
type source struct {
	r   io.Reader
	max int64
	err error
}

// newSource reads r's body, of at most max bytes.
func newSource(w http.ResponseWriter, r *http.Request, max int64) *source {
	return &source{r: http.MaxBytesReader(w, r.Body, max), max: max}
}

// Read returns the next piece.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// blame decides whose fault a failed read of a body is. A body that was cut on its way is not the client's fault: 408
// makes the client send it again, whereas 400 would make it a dead letter.
func (s *source) blame(err error, encoding string) error {
	if _, ok := errors.AsType[*wire.RefusalError](err); ok || errors.Is(err, context.Canceled) {
		return err
	}
	if _, ok := errors.AsType[*http.MaxBytesError](s.err); ok || errors.Is(err, errTooLarge) {
		return wire.Refuse(http.StatusRequestEntityTooLarge, "too_large",
			fmt.Sprintf("the request is larger than %d bytes, decompressed", s.max))
	}
	if s.err != nil {
		return wire.Refuse(http.StatusRequestTimeout, "incomplete", "the body ended early or came too slowly")
	}
	return wire.BadRequest("bad_encoding", fmt.Sprintf("the body is not %s: %v", encoding, err))
}
