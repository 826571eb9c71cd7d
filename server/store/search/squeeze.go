package search

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// maxPage bounds what a page becomes.
const maxPage = 64 << 20

var coders = sync.OnceValues(func() (*zstd.Encoder, *zstd.Decoder) {
	// Neither fails: the options are right.
	e, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	d, _ := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxPage), zstd.WithDecoderLowmem(true))
	return e, d
})

func squeeze(data []byte) []byte {
	e, _ := coders()
	return e.EncodeAll(data, nil)
}

func unsqueeze(data []byte) ([]byte, error) {
	_, d := coders()
	out, err := d.DecodeAll(data, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCorrupt, err)
	}
	return out, nil
}
