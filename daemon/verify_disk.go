package daemon

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

	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// diskLine is one line of a transcript as verify sees it, read anew from the disk.
type diskLine struct {
	index    int64
	raw      []byte // without the newline; valid until the next line
	oversize bool   // longer than the cap: raw is empty
}

// eachLine reads a file from byte 0 up to its cursor, and the last line that was delivered without its newline, and
// calls f for every line in order. When the sync did not finish it reads to the last newline on disk.
func (v *verifier) eachLine(ctx context.Context, t tail.Tracked, f func(diskLine) error) error {
	file, err := os.Open(t.File.Path)
	if err != nil {
		return fmt.Errorf("open transcript: %w", err)
	}
	defer file.Close()
	limit, end := v.d.cfg.LineCap, t.Cursor.Offset+t.Provisional.Length
	if v.whole {
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

// wholeLines is the offset behind the last newline of a file, least when there is none behind that.
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

// readLine returns the next line without its newline. A line longer than limit is passed over and flagged. long is
// scratch space that survives between calls.
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

// proof is what the server should have of a transcript.
type proof struct {
	lines, bytes       int64 // that should be there
	excluded, oversize int64 // that should not
	end                int64 // all of them
	sum                hash.Hash
	refused            map[int64]bool // lines the server refuses; set when lines are compared
}

// prove reads a transcript through today's rules and sums up what the server should have.
func (v *verifier) prove(ctx context.Context, t tail.Tracked, sentBefore int64) (*proof, error) {
	p := &proof{sum: sha256.New()}
	err := v.eachLine(ctx, t, func(l diskLine) error {
		v.advance(int64(len(l.raw)) + 1)
		p.end++
		switch {
		case l.oversize:
			p.oversize++
		case v.excludes(l, t, sentBefore):
			p.excluded++
		default:
			p.lines++
			p.bytes += int64(len(l.raw)) + 1
			p.sum.Write(l.raw)
			p.sum.Write([]byte{'\n'})
		}
		return nil
	})
	return p, err
}

// excludes says that a line is left out by the rules in force, so that the server need not have it.
func (v *verifier) excludes(l diskLine, t tail.Tracked, sentBefore int64) bool {
	if t.Cursor.Generation == 0 && l.index < sentBefore {
		return true
	}
	if t.File.Kind == tail.History {
		return v.d.router.History.Excludes(t.File.ID, l.raw)
	}
	if len(v.rules.ExcludeTypes) == 0 {
		return false
	}
	s := transcript.Scan(l.raw)
	return s.Shape == transcript.Object && v.rules.ExcludeTypes[string(s.Type)]
}
