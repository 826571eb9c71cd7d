package outbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/ccship/ccship/outbox/entries"
)

const (
	// packWindow bounds the memory of an encoder and a decoder of our frames. Batches are rarely larger.
	packWindow = 512 << 10
	// unpackLimit exceeds every batch: the longest line in base64 with its JSON frame.
	unpackLimit = 256 << 20
	// wholeRow is the limit in bytes up to which a batch is unpacked at once; larger ones are streamed.
	wholeRow = 1 << 20
)

// Packer compresses the entries of a batch. Not safe for concurrent use: one for each goroutine.
type Packer struct {
	encoder *zstd.Encoder
}

// NewPacker returns a packer. It holds about 1.5 MiB after its first use.
func NewPacker() *Packer {
	// No checksum: queue and transport have their own. The options are constants, so an error is a bug.
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(packWindow), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(fmt.Sprintf("zstd options: %v", err))
	}
	return &Packer{encoder: e}
}

// Pack appends raw, the entries of a batch joined by commas, to dst as one zstd frame, and returns the longer dst.
func (p *Packer) Pack(dst, raw []byte) []byte {
	if len(raw) > wholeRow {
		// One growth instead of a dozen, each of which would copy megabytes.
		dst = slices.Grow(dst, len(raw)+len(raw)>>10+64)
	}
	return p.encoder.EncodeAll(raw, dst)
}

// codecs pools encoders and decoders for the requests of a drainer.
type codecs struct {
	packers  sync.Pool // *Packer
	decoders sync.Pool // *zstd.Decoder
}

func (c *codecs) pack(dst, raw []byte) []byte {
	p, ok := c.packers.Get().(*Packer)
	if !ok {
		p = NewPacker()
	}
	defer c.packers.Put(p)
	return p.Pack(dst, raw)
}

// decoder returns a pooled decoder. It uses no goroutines, so one that is never released costs nothing.
func (c *codecs) decoder() *zstd.Decoder {
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

func (c *codecs) release(d *zstd.Decoder) {
	if d.Reset(nil) == nil {
		c.decoders.Put(d)
	}
}

// damage is the error of a queued batch whose content does not match its header.
type damage struct {
	seq uint64
	err error
}

func (d *damage) Error() string { return fmt.Sprintf("unpack batch %d: %v", d.seq, d.err) }
func (d *damage) Unwrap() error { return d.err }

var errRowLength = errors.New("length differs from the header")

// unpack appends the entries of b to dst. Its error is a *damage.
func (c *codecs) unpack(dst []byte, b *Batch) ([]byte, error) {
	d := c.decoder()
	defer c.release(d)
	start := len(dst)
	if b.Raw >= 0 && b.Raw <= unpackLimit {
		dst = slices.Grow(dst, int(b.Raw))
	}
	out, err := d.DecodeAll(b.Frame, dst)
	if err == nil && int64(len(out)-start) != b.Raw {
		err = errRowLength
	}
	if err != nil {
		return dst[:start], &damage{seq: b.Seq, err: err}
	}
	return out, nil
}

// firstBytes returns the first up to n unpacked bytes of b, without unpacking the rest.
func (c *codecs) firstBytes(b *Batch, n int64) ([]byte, error) {
	d := c.decoder()
	defer c.release(d)
	if err := d.Reset(bytes.NewReader(b.Frame)); err != nil {
		return nil, &damage{seq: b.Seq, err: err}
	}
	out, err := io.ReadAll(io.LimitReader(d, n))
	if err != nil {
		return nil, &damage{seq: b.Seq, err: err}
	}
	return out, nil
}

// halve splits a batch of at least two entries or items into its first and second half. Both keep the whole's span.
// Its error is a *damage.
func (c *codecs) halve(b *Batch) (first, second Batch, err error) {
	raw, err := c.unpack(nil, b)
	if err != nil {
		return first, second, err
	}
	parts, err := entries.Split(raw)
	if err == nil && len(parts) < 2 {
		err = errors.New("fewer entries than the header says")
	}
	if err != nil {
		return first, second, &damage{seq: b.Seq, err: err}
	}
	middle := len(parts) / 2
	var line int64
	if !b.Kind.artifact() {
		var ok bool
		if line, ok = entries.LineIndex(parts[middle]); !ok {
			return first, second, &damage{seq: b.Seq, err: errors.New("entry without line_index")}
		}
	}
	// Entries lie side by side in raw, a comma between them.
	cut := 0
	for _, e := range parts[:middle] {
		cut += len(e) + 1
	}
	first, second = *b, *b
	if first.Entries, second.Entries = middle, len(parts)-middle; b.Kind.artifact() {
		first.Items, second.Items = first.Entries, second.Entries
		first.Entries, second.Entries = 0, 0
		second.From.Line += int64(middle) // tells apart the dead letters of one batch
	}
	first.Raw, second.Raw = int64(cut-1), int64(len(raw)-cut)
	first.Frame, second.Frame = c.pack(nil, raw[:cut-1]), c.pack(nil, raw[cut:])
	first.Edges, second.Edges = nil, nil
	for _, e := range b.Edges {
		if e.Line < line {
			first.Edges = append(first.Edges, e)
		} else {
			second.Edges = append(second.Edges, e)
		}
	}
	return first, second, nil
}
