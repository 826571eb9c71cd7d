package kv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Check reads the structure of the file at path, also while a daemon uses it: it takes no lock.
// ErrCorrupt: the file is damaged, or its daemon has found damage. fs.ErrNotExist: there is no file. An error of ctx:
// the file is too large, or changes too fast, to be read in that time. Check does not check the values.
//
// A daemon that commits during the walk makes it fail: bbolt overwrites the pages of the old tree once no reader it
// knows of needs them, and it does not know this process. So a failure counts only if the root is still the same
// afterwards; otherwise the walk begins again at the new root.
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
		// A page is overwritten only after the next root is written: if the root is the same, it was damage.
		if m, metaErr := newestMeta(reader); !errors.Is(err, ErrCorrupt) || metaErr != nil || m.txid == txid {
			return fmt.Errorf("check state: %w", err)
		}
	}
}

// reading is an io.ReaderAt made from its only method.
type reading func(p []byte, off int64) (int, error)

func (r reading) ReadAt(p []byte, off int64) (int, error) { return r(p, off) }

// readUntil reads f until ctx is done, and then fails: the walk cannot be ended early anywhere else.
func readUntil(ctx context.Context, f io.ReaderAt) io.ReaderAt {
	return reading(func(p []byte, off int64) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return f.ReadAt(p, off)
	})
}
