package library

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// eachLine calls f with each line of a file, without its newline; whole says that it had one. The line is f's to keep.
func eachLine(ctx context.Context, path string, f func(line []byte, whole bool) error) error {
	in, err := os.Open(path)
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

// lines reads the lines of a file. The memory of a line is reused for the next one.
type lines struct {
	in     *bufio.Reader
	buffer []byte
	read   int64 // bytes
}

func newLines() *lines { return &lines{in: bufio.NewReaderSize(nil, 256<<10)} }

// reset begins with another file.
func (l *lines) reset(r io.Reader) {
	l.in.Reset(r)
	l.read = 0
	if cap(l.buffer) > 4<<20 {
		l.buffer = nil // of one file with a long line
	}
}

// next returns the next line without its newline. ended says that it had one, long that the line is not given because
// it is too long. The error is io.EOF after the last line.
func (l *lines) next() (line []byte, ended, long bool, err error) {
	l.buffer = l.buffer[:0]
	for {
		part, err := l.in.ReadSlice('\n')
		l.read += int64(len(part))
		switch {
		case long || len(l.buffer)+len(part) > maxLine:
			long = true
		case err == nil && len(l.buffer) == 0:
			return part[:len(part)-1], true, false, nil
		default:
			l.buffer = append(l.buffer, part...)
		}
		switch {
		case err == nil:
			return l.buffer[:max(0, len(l.buffer)-1)], true, long, nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && (len(l.buffer) > 0 || long):
			return l.buffer, false, long, nil
		}
		return nil, false, false, err
	}
}
