package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Check reads the structure of the state file at path, also while a daemon uses it: nothing is locked, and nobody waits.
// ErrCorrupt: it does not hold together, or its daemon has found that out. fs.ErrNotExist: there is none. What ctx ends
// with: it is too large, or changes too fast, to be read in that time. The values in it are not looked at.
func Check(ctx context.Context, path string) error {
	if words, err := os.ReadFile(path + suffixBroken); err == nil {
		return fmt.Errorf("%w: found while it was in use: %s", ErrCorrupt, strings.TrimSpace(string(words)))
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("check state: %w", err)
	}
	defer f.Close()
	reader := readUntil(ctx, f)
	for {
		txid, err := checkPages(reader, f.Stat)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("check state: %w", ctx.Err())
		}
		// A page is written anew only after the next root is: while the root is the same, it was damage that was seen.
		if m, metaErr := newestMeta(reader); !errors.Is(err, ErrCorrupt) || metaErr != nil || m.txid == txid {
			return fmt.Errorf("check state: %w", err)
		}
	}
}

// reading is an io.ReaderAt made of its only method.
type reading func(p []byte, off int64) (int, error)

func (r reading) ReadAt(p []byte, off int64) (int, error) { return r(p, off) }

// readUntil fails once ctx is done.
func readUntil(ctx context.Context, f io.ReaderAt) io.ReaderAt {
	return reading(func(p []byte, off int64) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return f.ReadAt(p, off)
	})
}

// DiskSpace answers how many bytes are free on the disk of a folder, and below how many of them reading stops, for the
// head-room that Options would be told; 0 is the default. Room inside the state file is not counted.
func DiskSpace(dir string, headRoomOption int64) (free, head uint64, err error) {
	free, total, err := freeDisk(dir)
	if err != nil {
		return 0, 0, err
	}
	return free, headRoom(headRoomOption, total), nil
}
