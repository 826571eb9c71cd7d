package tail

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"hash"

	"github.com/cespare/xxhash/v2"
)

// lastLine is how many of the bytes are whole lines.
func lastLine(b []byte) int { return bytes.LastIndexByte(b, '\n') + 1 }

// longFrom is how long a line without end must be for it to be remembered how far it was searched.
const longFrom = 64 << 10

// longLine remembers how far a line was searched for its end, so that one of many MB that is written in small pieces
// is not read from its start with every piece. It lives in memory only.
type longLine struct {
	base    Cursor // where the line starts
	scanned int64  // no newline before this offset
	tail    uint64 // Anchor of scanned
	sum     *lineSum
}

// lineSum is the hashes of a line beyond the cap, as far as it was read.
type lineSum struct {
	upto int64
	sha  hash.Hash
	open xxhash.Digest // from the last Mark on
}

// fits says whether what is remembered is of this line in this state of the file.
func (g *longLine) fits(base Cursor, st Stat, h *handle, a *arena) bool {
	if g.base != base || st.Size < g.scanned {
		return false
	}
	from := max(base.Offset, g.scanned-AnchorSize)
	b := a.scratch[:g.scanned-from]
	k, _ := h.ReadAt(b, from)
	return k == len(b) && sum(b) == g.tail
}

// readLong reads on when the first line is longer than a turn: it finds the line's end first, and takes the line as
// a whole only when it is there.
func (l *look) readLong(ctx context.Context, h *handle, a *arena, left int64) ([]byte, error) {
	if !l.solo && left > l.turn {
		l.heavy = true
		return nil, nil
	}
	end, err := l.search(ctx, h, a)
	if err != nil {
		return nil, err
	}
	length := max(end, l.long.scanned) - l.base.Offset
	if length > l.t.cfg.Cap {
		return nil, l.oversize(ctx, h, a, end)
	}
	n := length + 1
	if end < 0 {
		if l.partial = left; !l.quiet() {
			l.make(nil)
			return nil, nil
		}
		n = left
	}
	g := l.long
	buf := a.take(n)
	if k, err := h.ReadAt(buf, l.base.Offset); k < len(buf) {
		return nil, err
	}
	lines, err := l.split(buf, lastLine(buf), left)
	if end < 0 && len(lines) == 0 {
		l.long = g
	} else if len(lines) == 0 && err == nil {
		err = errChanged
	}
	return lines, err
}

// search finds the newline that ends the long line: its offset, or -1.
func (l *look) search(ctx context.Context, h *handle, a *arena) (int64, error) {
	g := *l.long // a copy: what a failed look saw is not remembered
	l.long = &g
	if g.scanned < g.base.Offset {
		g.scanned = g.base.Offset
	}
	for g.scanned < l.st.Size {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		b := a.scratch[:min(int64(len(a.scratch)), l.st.Size-g.scanned)]
		if k, err := h.ReadAt(b, g.scanned); k < len(b) {
			return 0, err
		}
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			return g.scanned + int64(i), nil
		}
		g.scanned += int64(len(b))
	}
	from := max(g.base.Offset, g.scanned-AnchorSize)
	b := a.scratch[:g.scanned-from]
	if k, err := h.ReadAt(b, from); k < len(b) {
		return 0, err
	}
	g.tail = sum(b)
	return -1, nil
}

// oversize hashes what is there of a line beyond the cap, and delivers its description when it has an end.
func (l *look) oversize(ctx context.Context, h *handle, a *arena, end int64) error {
	g := l.long
	if g.sum == nil {
		g.sum = &lineSum{upto: g.base.Offset, sha: sha256.New(), open: l.walk.open}
	}
	upto := end
	if end < 0 {
		upto, l.partial = g.scanned, l.st.Size-l.base.Offset
	}
	for s := g.sum; s.upto < upto; {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := a.scratch[:min(int64(len(a.scratch)), upto-s.upto)]
		if k, err := h.ReadAt(b, s.upto); k < len(b) {
			return err
		}
		s.sha.Write(b)
		s.open.Write(b)
		s.upto += int64(len(b))
	}
	if end < 0 {
		l.make(nil)
		return nil
	}
	return l.describe(h, a, end)
}

// describe makes the chunk of a line beyond the cap.
func (l *look) describe(h *handle, a *arena, end int64) error {
	o := &Oversize{Offset: l.base.Offset, Length: end - l.base.Offset}
	l.long.sum.sha.Sum(o.SHA256[:0])
	l.walk.open = l.long.sum.open // a copy; the line may have to be offered again
	l.walk.open.Write([]byte{'\n'})
	l.walk.offset, l.walk.line = end+1, l.base.Line+1
	l.walk.place()
	b := a.room(min(AnchorSize, end+1))
	if k, err := h.ReadAt(b, end+1-int64(len(b))); k < len(b) {
		return err
	}
	if b[len(b)-1] != '\n' {
		return errChanged
	}
	l.begin()
	l.chunk.Oversize = o
	l.end(l.walk.cursor(l.base.Generation), sum(b))
	l.more, l.partial = l.st.Size > end+1, 0
	return nil
}

// quiet says whether the file has not changed for so long that its last line may be complete without a newline.
func (l *look) quiet() bool {
	return l.was.File.Stat == l.st && l.t.now()-l.still >= l.t.cfg.Quiet
}

// offer makes a chunk of a last line without newline when it is a complete JSON object and the file is quiet.
func (l *look) offer(line []byte) {
	if !l.quiet() || int64(len(line)) > l.t.cfg.Cap || l.tail.Length > 0 {
		return
	}
	l.tried = true
	if text := bytes.TrimLeft(line, " \t\r"); len(text) == 0 || text[0] != '{' || !json.Valid(line) {
		return
	}
	if l.chunk == nil {
		l.begin()
		l.end(l.base, l.base.Anchor)
	}
	l.chunk.Provisional = line
}

// provisional looks what became of a last line that was delivered without its newline. Unless it has been ended as
// it was, or is just as it was, that is a rewind to its start.
func (l *look) provisional(h *handle, a *arena) error {
	p := l.was.Provisional
	if p.Length == 0 || l.base != l.was.Cursor {
		return nil
	}
	left := l.st.Size - l.base.Offset
	same := false
	if left >= p.Length {
		whole := proof{r: h, scratch: a.scratch}
		got, err := whole.hash(context.Background(), l.base.Offset, l.base.Offset+p.Length)
		if err != nil {
			return err
		}
		same = got == p.Hash
	}
	if same && left == p.Length {
		l.tail = p
		return nil
	}
	if same {
		var next [1]byte
		if _, err := h.ReadAt(next[:], l.base.Offset+p.Length); err != nil {
			return err
		}
		if l.sealed = next[0] == '\n'; l.sealed {
			return nil
		}
	}
	l.base.Generation++
	return nil
}
