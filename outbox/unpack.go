package outbox

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// unpackLimit exceeds every batch: the longest line in base64 with its JSON frame.
const unpackLimit = 256 << 20

// UnpackEntries returns the entries of a batch, from its zstd frame. An error means that the batch is damaged.
func UnpackEntries(frame []byte) ([][]byte, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(unpackLimit))
	if err != nil {
		return nil, fmt.Errorf("unpack batch: %w", err)
	}
	defer d.Close()
	raw, err := d.DecodeAll(frame, nil)
	if err != nil {
		return nil, fmt.Errorf("unpack batch: %w", err)
	}
	return splitEntries(raw)
}
