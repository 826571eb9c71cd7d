package proof

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/redact"
)

// end returns the offset up to which a file is compared: its cursor, behind a last line that was delivered without its
// newline. When delivery is incomplete it is the last newline on disk.
func (v *verifier) end(t *tail.Tracked) (int64, error) {
	read := t.Cursor.Offset + t.Provisional.Length
	if v.options.Incomplete == "" {
		return read, nil
	}
	file, err := sys.OpenRegular(t.File.Path)
	if err != nil {
		return 0, fmt.Errorf("open transcript: %w", err)
	}
	defer file.Close()
	end, err := wholeLines(file, read)
	if err != nil {
		return 0, fmt.Errorf("read transcript: %w", err)
	}
	return end, nil
}

// eachLine calls f for every line of a file in order, up to an offset that stays: the file may grow meanwhile.
func (v *verifier) eachLine(ctx context.Context, path string, end int64, f func(tail.Line) error) error {
	file, err := sys.OpenRegular(path)
	if err != nil {
		return fmt.Errorf("open transcript: %w", err)
	}
	defer file.Close()
	for lines := tail.NewLineReader(io.LimitReader(file, end), v.LineCap, end); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read transcript: %w", err)
		}
		if err := f(line); err != nil {
			return err
		}
	}
}

// unfinished reports whether the last line of a transcript has no end, so that it is not delivered, and whether there
// is any whole line. Of a file that cannot be read it answers as of a finished one.
func (v *verifier) unfinished(t *tail.Tracked) (unfinished, whole bool) {
	read := t.Cursor.Offset + t.Provisional.Length
	file, err := sys.OpenRegular(t.File.Path)
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

// summary is what a server should hold of a transcript.
type summary struct {
	lines, bytes       int64                         // that should be there
	excluded, oversize int64                         // lines that should not
	sentBefore         int64                         // of excluded, lines that were sent before ccship was installed
	clear              int64                         // lines with secrets that the server holds unmasked
	masked             int64                         // secrets in the lines that should be there
	unproven           int64                         // those of them that are too short for a hash
	end                int64                         // all lines
	size               int64                         // of all lines, in bytes
	sum                hash.Hash                     // of the lines that should be there
	layout             transcript.Layout             // where they stand, and those beyond the cap
	refused            map[int64]bool                // lines that the server refused; set when lines are compared
	maskedThere        map[int64]bool                // lines that the server itself masked; set when lines are compared
	notes              map[int64]transcript.Oversize // what the server has of lines beyond the cap
	retired            int64                         // lines of which the server has only hashes
	retiredUnproven    int64                         // those of them that differ: secrets masked in another way
	retiredThere       func(int64) bool
	byServer           int64 // those of them that differ only in tokens; set when lines are compared
}

// summarize reads a transcript and applies the rules in force.
func (v *verifier) summarize(ctx context.Context, t tail.Tracked, f *state.Routing) (*summary, error) {
	size, err := v.end(&t)
	if err != nil {
		return nil, err
	}
	s, masker := &summary{size: size, sum: sha256.New()}, v.Masking.For(f.Dest, f.Stream.Cwd)
	err = v.eachLine(ctx, t.File.Path, size, func(l tail.Line) error {
		v.report.read(l.Length + 1)
		s.end++
		switch {
		case l.Oversize:
			s.oversize++
			s.layout.Oversize(l.Index, NoteOf(&l))
		case wasSentBefore(l.Index, &t, f):
			s.excluded++
			s.sentBefore++
		case v.Rules.LeavesOut(&t.File, l.Raw):
			s.excluded++
		default:
			s.lines++
			s.bytes += l.Length + 1
			s.layout.Line(l.Index)
			sent, ranges := masker.Line(l.Raw)
			s.count(ranges)
			s.sum.Write(sent)
			s.sum.Write([]byte{'\n'})
		}
		return nil
	})
	return s, err
}

// digest returns what the digest of a view should be that ends before line end. Only lines that a server need not have
// may follow it.
func (s *summary) digest(end int64) string {
	if end < s.layout.Next() || end > s.end {
		return ""
	}
	return hex.EncodeToString(s.layout.Sum(end, s.sum.Sum(nil)))
}

// NoteOf returns what a server has of a line beyond the cap.
func NoteOf(l *tail.Line) transcript.Oversize {
	return transcript.Oversize{Offset: l.Offset, Length: l.Length, SHA256: l.SHA256}
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
func (v *verifier) leavesOut(l *tail.Line, t *tail.Tracked, f *state.Routing) bool {
	return !l.Oversize && (wasSentBefore(l.Index, t, f) || v.Rules.LeavesOut(&t.File, l.Raw))
}

// wasSentBefore reports whether a line was sent before ccship was installed. A generation that begins before such a
// line sends it again.
func wasSentBefore(index int64, t *tail.Tracked, f *state.Routing) bool {
	return index < f.SentBefore && (t.Cursor.Generation == 0 || index < f.RewoundTo)
}
