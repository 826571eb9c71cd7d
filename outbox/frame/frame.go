// Package frame packs the rows of the queue as zstd frames, unpacks them, and reads bodies that are made of them. It
// does not know what rows hold.
package frame

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// Window bounds the memory of an encoder and a decoder of our frames. Rows are rarely larger.
	Window = 512 << 10
	// Whole is the limit in bytes up to which a row is unpacked at once; larger ones are streamed.
	Whole = 1 << 20
	// unpackLimit exceeds every row: the longest line in base64 with its JSON frame.
	unpackLimit = 256 << 20
)

// Row is a row of the queue: what it holds, as one zstd frame.
type Row struct {
	Seq   uint64
	Raw   int64 // bytes when unpacked
	Frame []byte
}

// Packer compresses rows. Not safe for concurrent use: one for each goroutine.
type Packer struct {
	encoder *zstd.Encoder
}

// NewPacker returns a packer. It holds about 1.5 MiB after its first use.
func NewPacker() *Packer {
	// No checksum: queue and transport have their own. The options are constants, so an error is a bug.
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(Window), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(fmt.Sprintf("zstd options: %v", err))
	}
	return &Packer{encoder: e}
}

// Pack appends raw to dst as one zstd frame, and returns the longer dst.
func (p *Packer) Pack(dst, raw []byte) []byte {
	if len(raw) > Whole {
		// One growth instead of a dozen, each of which would copy megabytes.
		dst = slices.Grow(dst, len(raw)+len(raw)>>10+64)
	}
	return p.encoder.EncodeAll(raw, dst)
}

// Pool has encoders and decoders for many goroutines. The zero Pool is ready.
type Pool struct {
	packers  sync.Pool // *Packer
	decoders sync.Pool // *zstd.Decoder
	rows     sync.Pool // *[]byte: what rows are unpacked into, at most Whole
}

// Pack is Packer.Pack.
func (c *Pool) Pack(dst, raw []byte) []byte {
	p, ok := c.packers.Get().(*Packer)
	if !ok {
		p = NewPacker()
	}
	defer c.packers.Put(p)
	return p.Pack(dst, raw)
}

// row returns a pooled buffer for what a row holds.
func (c *Pool) row() *[]byte {
	if b, ok := c.rows.Get().(*[]byte); ok {
		return b
	}
	return new([]byte)
}

// decoder returns a pooled decoder. It uses no goroutines, so one that is never released costs nothing.
func (c *Pool) decoder() *zstd.Decoder {
	if d, ok := c.decoders.Get().(*zstd.Decoder); ok {
		return d
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(unpackLimit))
	if err != nil {
		panic(fmt.Sprintf("zstd options: %v", err))
	}
	return d
}

func (c *Pool) release(d *zstd.Decoder) {
	if d.Reset(nil) == nil {
		c.decoders.Put(d)
	}
}

// DamageError is the error of a row whose content does not match its header.
type DamageError struct {
	Seq uint64
	Err error
}

func (d *DamageError) Error() string { return fmt.Sprintf("unpack batch %d: %v", d.Seq, d.Err) }

// Unwrap returns what is wrong.
func (d *DamageError) Unwrap() error { return d.Err }

// ErrLength means that a row holds more or less than its header says.
var ErrLength = errors.New("length differs from the header")

// Unpack appends what a row holds to dst. Its error is a *DamageError.
func (c *Pool) Unpack(dst []byte, r Row) ([]byte, error) {
	d := c.decoder()
	defer c.release(d)
	start := len(dst)
	if r.Raw >= 0 && r.Raw <= unpackLimit {
		dst = slices.Grow(dst, int(r.Raw))
	}
	out, err := d.DecodeAll(r.Frame, dst)
	if err == nil && int64(len(out)-start) != r.Raw {
		err = ErrLength
	}
	if err != nil {
		return dst[:start], &DamageError{Seq: r.Seq, Err: err}
	}
	return out, nil
}

// First returns the first up to n bytes that a row holds, without unpacking the rest.
func (c *Pool) First(r Row, n int64) ([]byte, error) {
	d := c.decoder()
	defer c.release(d)
	if err := d.Reset(bytes.NewReader(r.Frame)); err != nil {
		return nil, &DamageError{Seq: r.Seq, Err: err}
	}
	out, err := io.ReadAll(io.LimitReader(d, n))
	if err != nil {
		return nil, &DamageError{Seq: r.Seq, Err: err}
	}
	return out, nil
}
