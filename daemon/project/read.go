package project

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/ccship/ccship/internal/sys"
)

const (
	maxFile     = 1 << 20  // a larger file is not a configuration
	maxSnapshot = 16 << 20 // lists every file of the project, so it may be long
)

// errTooLarge is permanent: the file exists but is not usable.
var errTooLarge = errors.New("too large")

// permanent reports whether another attempt to read cannot help.
func permanent(err error) bool {
	return errors.Is(err, sys.ErrNotFile) || errors.Is(err, errTooLarge) || errors.Is(err, fs.ErrPermission)
}

// readFile reads a small file, without its byte order mark. A cloned repository may hold a pipe in its place.
func readFile(path string, limit int64) ([]byte, error) {
	f, err := sys.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("read %s: %w: more than %d bytes", path, errTooLarge, limit)
	}
	return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), nil
}

// changedWithin reports whether a file was written within the last d. A date in the future does not count as recent.
func changedWithin(path string, d time.Duration) bool {
	info, err := os.Stat(path)
	if err != nil {
		return true
	}
	age := time.Since(info.ModTime())
	return age >= 0 && age < d
}
