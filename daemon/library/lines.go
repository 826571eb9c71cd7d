package library

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ccship/ccship/internal/sys"
)

// eachLine calls f with each line of a file, without its newline; whole says that it had one. The line is f's to keep.
func eachLine(ctx context.Context, path string, f func(line []byte, whole bool) error) error {
	in, err := sys.OpenRegular(path)
	if err != nil {
		return fmt.Errorf("read transcript: %w", err)
	}
	defer in.Close()
	for lines := bufio.NewReaderSize(in, 256<<10); ctx.Err() == nil; {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read transcript: %w", err)
		}
		if len(line) > 0 {
			if err := f(bytes.TrimSuffix(line, []byte("\n")), err == nil); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
	return ctx.Err()
}

// maxLine is the longest line that is read, in bytes.
const maxLine = 64 << 20
