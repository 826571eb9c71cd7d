package verify

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript/redact"
)

// diskLine is one line of a transcript on disk.
type diskLine struct {
	index    int64
	raw      []byte // without the newline; valid until the next line
	oversize bool   // longer than the cap: raw is empty
}

// eachLine calls f for every line of a file in order: from byte 0 up to its cursor, and a last line that was delivered
// without its newline. When delivery is incomplete it reads to the last newline on disk.
func (v *verifier) eachLine(ctx context.Context, t tail.Tracked, f func(diskLine) error) error {
	file, err := os.Open(t.File.Path)
	if err != nil {
		return fmt.Errorf("open transcript: %w", err)
	}
	defer file.Close()
	limit, end := v.LineCap, t.Cursor.Offset+t.Provisional.Length
	if v.options.Incomplete != "" {
		if end, err = wholeLines(file, end); err != nil {
			return fmt.Errorf("read transcript: %w", err)
		}
	}
	r := bufio.NewReaderSize(io.LimitReader(file, end), int(min(end+1, 256<<10))) // most files are small
	var long []byte
	for index := int64(0); ; index++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		line, oversize, err := readLine(r, &long, limit)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read transcript: %w", err)
		}
		if err := f(diskLine{index: index, raw: line, oversize: oversize}); err != nil {
			return err
		}
	}
}

// unfinished reports whether the last line of a transcript has no end, so that it is not delivered, and whether there
// is any whole line. Of a file that cannot be read it answers as of a finished one.
func (v *verifier) unfinished(t *tail.Tracked) (unfinished, whole bool) {
	read := t.Cursor.Offset + t.Provisional.Length
	file, err := os.Open(t.File.Path)
	if err != nil {
		return false, true
	}
	defer file.Close()
	end, err := wholeLines(file, read)
	info, statErr := file.Stat()
	if err != nil || statErr != nil {
		return false, true
	}
	return info.Size() > read && end == read, end > 0
}

// wholeLines returns the offset after the last newline of a file; least if no newline follows that.
func wholeLines(file *os.File, least int64) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	buf := make([]byte, 64<<10)
	for end := info.Size(); end > least; {
		part := buf[:min(int64(len(buf)), end-least)]
		end -= int64(len(part))
		if _, err := file.ReadAt(part, end); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return end + int64(i) + 1, nil
		}
	}
	return least, nil
}

// readLine returns the next line without its newline. It skips a line longer than limit and flags it. long is scratch
// space that is kept between calls.
func readLine(r *bufio.Reader, long *[]byte, limit int64) (line []byte, oversize bool, err error) {
	part, err := r.ReadSlice('\n')
	if err == nil {
		return part[:len(part)-1], false, nil
	}
	buf, total := (*long)[:0], int64(0)
	for {
		total += int64(len(part))
		if total <= limit+1 {
			buf = append(buf, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
		part, err = r.ReadSlice('\n')
	}
	*long = buf
	if err != nil && (!errors.Is(err, io.EOF) || total == 0) {
		return nil, false, err
	}
	if err == nil {
		total--
		buf = bytes.TrimSuffix(buf, []byte("\n"))
	}
	if total > limit {
		return nil, true, nil
	}
	return buf, false, nil
}

// summary is what a server should hold of a transcript.
type summary struct {
	lines, bytes       int64 // that should be there
	excluded, oversize int64 // lines that should not
	sentBefore         int64 // of excluded, lines that were sent before ccship was installed
	clear              int64 // lines with secrets that the server holds unmasked; set when lines are compared
	masked             int64 // secrets in the lines that should be there
	unproven           int64 // those of them that are too short for a hash
	end                int64 // all lines
	sum                hash.Hash
	refused            map[int64]bool // lines that the server refused; set when lines are compared
	maskedThere        map[int64]bool // lines that the server itself masked; set when lines are compared
	retired            int64          // lines of which the server has only hashes
	retiredUnproven    int64          // those of them that differ, for secrets that are masked some other way
	retiredThere       func(int64) bool
	byServer           int64 // those of them that differ only in tokens; set when lines are compared
}

// summarize reads a transcript and applies the rules in force.
func (v *verifier) summarize(ctx context.Context, t tail.Tracked, f *state.Routing) (*summary, error) {
	s, masker := &summary{sum: sha256.New()}, v.Masking.For(f.Dest, f.Stream.Cwd)
	err := v.eachLine(ctx, t, func(l diskLine) error {
		v.report.read(int64(len(l.raw)) + 1)
		s.end++
		switch {
		case l.oversize:
			s.oversize++
		case wasSentBefore(l, &t, f):
			s.excluded++
			s.sentBefore++
		case v.Rules.LeavesOut(&t.File, l.raw):
			s.excluded++
		default:
			s.lines++
			s.bytes += int64(len(l.raw)) + 1
			sent, ranges := masker.Line(l.raw)
			s.count(ranges)
			s.sum.Write(sent)
			s.sum.Write([]byte{'\n'})
		}
		return nil
	})
	return s, err
}

// count adds the secrets masked in a line.
func (s *summary) count(ranges []redact.Range) {
	s.masked += int64(len(ranges))
	for _, r := range ranges {
		if !r.Proven {
			s.unproven++
		}
	}
}

// leavesOut reports whether the server may rightly lack a line.
func (v *verifier) leavesOut(l diskLine, t *tail.Tracked, f *state.Routing) bool {
	return wasSentBefore(l, t, f) || v.Rules.LeavesOut(&t.File, l.raw)
}

// wasSentBefore reports whether a line was sent before ccship was installed. A generation that begins before such a
// line sends it again.
func wasSentBefore(l diskLine, t *tail.Tracked, f *state.Routing) bool {
	return l.index < f.SentBefore && (t.Cursor.Generation == 0 || l.index < f.RewoundTo)
}
