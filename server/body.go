package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
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

// release gives back what the body holds. A large buffer is left to the collector.
func (b *bodies) release(buf *buffer) {
	for _, f := range buf.done {
		f()
	}
	buf.done = nil
	if buf.Cap() <= smallBody {
		buf.Reset()
		b.buffers.Put(buf)
	}
}

var errTooLarge = errors.New("body too large")

// read takes in the whole body of r, decompressed: at most max bytes, whatever it says of itself. The caller
// releases the buffer when there is no error.
func (b *bodies) read(w http.ResponseWriter, r *http.Request, max int64, large chan struct{}) (*buffer, error) {
	encoding := strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding")))
	plain := &source{r: http.MaxBytesReader(w, r.Body, max)}
	src, done, err := b.decoder(encoding, plain)
	if err != nil {
		return nil, plain.blame(err, encoding, max)
	}
	defer done()
	buf, ok := b.buffers.Get().(*buffer)
	if !ok {
		buf = &buffer{}
	}
	if err := fill(r.Context(), buf, src, max, large); err != nil {
		b.release(buf)
		return nil, plain.blame(err, encoding, max)
	}
	return buf, nil
}

// source is the body as it comes from the network. It remembers the network's error, which a decoder may dress up.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
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
			buf.done = append(buf.done, func() { <-large })
		case <-ctx.Done():
			return ctx.Err()
		}
		m, err := io.Copy(&buf.Buffer, io.LimitReader(src, max+1-n))
		if err != nil {
			return err
		}
		n += m
	}
	if n > max {
		return errTooLarge
	}
	return nil
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

// blame says whose fault it is that a body could not be read. A body that was cut on its way is not the client's: 408
// has it sent again, where 400 would make a dead letter of it.
func (s *source) blame(err error, encoding string, max int64) error {
	if _, ok := errors.AsType[*refusal](err); ok || errors.Is(err, context.Canceled) {
		return err
	}
	if _, ok := errors.AsType[*http.MaxBytesError](s.err); ok || errors.Is(err, errTooLarge) {
		return &refusal{http.StatusRequestEntityTooLarge, "too_large",
			fmt.Sprintf("the request is larger than %d bytes, decompressed", max)}
	}
	if s.err != nil {
		return &refusal{http.StatusRequestTimeout, "incomplete", "the body ended early or came too slowly"}
	}
	return badRequest("bad_encoding", fmt.Sprintf("the body is not %s: %v", encoding, err))
}
