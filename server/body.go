package server

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

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	// smallBody is what any request may take in memory; the few that are larger wait for one of largeBodies tokens,
	// so that memory stays bounded whatever arrives at once.
	smallBody   = 8 << 20
	largeBodies = 2
	pieceOfBody = 1 << 20
	// maxWindow is what a zstd frame may make the decoder keep; RFC 8878 asks for 8 MiB.
	maxWindow = 8 << 20
)

// bodies reads and decompresses requests, and keeps what that takes for the next one. The zero value works. Safe for
// concurrent use.
type bodies struct {
	zstd, gzip, buffers sync.Pool
}

// buffer is a request's body; its bytes are valid until release.
type buffer struct {
	bytes.Buffer
	done []func()
}

// release gives back what the body holds. A large buffer is not kept: its memory goes before its token does.
func (b *bodies) release(buf *buffer) {
	keep := buf.Cap() <= smallBody
	if !keep {
		buf.Buffer = bytes.Buffer{}
	}
	for _, f := range buf.done {
		f()
	}
	buf.done = nil
	if keep {
		buf.Reset()
		b.buffers.Put(buf)
	}
}

var errTooLarge = errors.New("body too large")

// read takes in a whole body, decompressed: at most plain.max bytes, whatever it says of itself. The caller releases
// the buffer when there is no error.
func (b *bodies) read(ctx context.Context, plain *source, encoding string, large chan struct{}) (*buffer, error) {
	encoding = strings.ToLower(strings.TrimSpace(encoding))
	src, done, err := b.decoder(encoding, plain)
	if err != nil {
		return nil, plain.blame(err, encoding)
	}
	defer done()
	buf, ok := b.buffers.Get().(*buffer)
	if !ok {
		buf = &buffer{}
	}
	if err := fill(ctx, buf, src, plain.max, large); err != nil {
		b.release(buf)
		return nil, plain.blame(err, encoding)
	}
	return buf, nil
}

// fill copies src into buf, taking a token of large when it goes beyond smallBody.
func fill(ctx context.Context, buf *buffer, src io.Reader, max int64, large chan struct{}) error {
	n, err := io.Copy(&buf.Buffer, io.LimitReader(src, smallBody+1))
	if err != nil {
		return err
	}
	if n > smallBody && n <= max {
		select {
		case large <- struct{}{}:
			buf.done = append(buf.done, func() {
				debug.FreeOSMemory() // else the next one comes on top of what is only garbage
				<-large
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

// fillRest appends at most max bytes. It takes them in pieces: a buffer that doubles again and again would leave as much
// garbage as it holds, and most of what is that large is refused in the end.
func fillRest(buf *buffer, src io.Reader, max int64) error {
	var p pile
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

// pile takes bytes without moving those it has.
type pile [][]byte

// Write appends.
func (p *pile) Write(b []byte) (int, error) {
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

// decoder undoes the content encoding. done gives the decoder back.
func (b *bodies) decoder(encoding string, src io.Reader) (out io.Reader, done func(), err error) {
	switch encoding {
	case "", "identity":
		return src, func() {}, nil
	case "zstd":
		return b.zstdDecoder(src)
	case "gzip", "x-gzip":
		return b.gzipDecoder(src)
	}
	return nil, nil, &refusal{http.StatusUnsupportedMediaType, "unsupported_encoding",
		fmt.Sprintf("Content-Encoding %q; this server takes zstd, gzip and identity", encoding)}
}

func (b *bodies) zstdDecoder(src io.Reader) (io.Reader, func(), error) {
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

func (b *bodies) gzipDecoder(src io.Reader) (io.Reader, func(), error) {
	d, ok := b.gzip.Get().(*gzip.Reader)
	if !ok {
		d = new(gzip.Reader)
	}
	if err := d.Reset(src); err != nil { // reads the header
		return nil, nil, err
	}
	return d, func() { b.gzip.Put(d) }, nil
}
