package tail

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"hash"

	"github.com/cespare/xxhash/v2"
)

// lastLine returns the length of the whole lines in b.
func lastLine(b []byte) int { return bytes.LastIndexByte(b, '\n') + 1 }

// longFrom is the length from which the search position in an unfinished line is remembered.
const longFrom = 64 << 10

// longLine remembers how far an unfinished line was searched for its end, so that a line of many MB that is written in
// small pieces is not read from its start for each piece. In memory only.
type longLine struct {
	base    Cursor // where the line starts
	scanned int64  // no newline before this offset
	tail    uint64 // Anchor of scanned
	sum     *lineSum
}

// lineSum holds the hashes of a line beyond the cap, as far as it was read.
type lineSum struct {
	upto int64
	sha  hash.Hash
	open xxhash.Digest // from the last Mark on
}

// fits reports whether what is remembered applies to this line and state of the file.
func (g *longLine) fits(base Cursor, st Stat, h *handle, a *arena) bool {
	if g.base != base || st.Size < g.scanned {
		return false
	}
	from := max(base.Offset, g.scanned-AnchorSize)
	b := a.Scratch[:g.scanned-from]
	k, _ := h.ReadAt(b, from)
	return k == len(b) && hashOf(b) == g.tail
}

// readLong reads when the first line exceeds the budget: it finds the end of the line first, and reads the line only
// once it is complete.
func (l *inspection) readLong(ctx context.Context, h *handle, a *arena, left int64) ([]byte, error) {
	if !l.alone && left > l.budget {
		l.deferred = true
		return nil, nil
	}
	end, err := l.findNewline(ctx, h, a)
	if err != nil {
		return nil, err
	}
	length := max(end, l.long.scanned) - l.base.Offset
	if overCap(length, l.t.cfg.Cap) {
		return nil, l.oversize(ctx, h, a, end)
	}
	n := length + 1
	if end < 0 {
		if l.partial = left; !l.quiet() {
			l.buildChunk(nil)
			return nil, nil
		}
		n = left
	}
	g := l.long
	buf := a.Take(n)
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

// findNewline returns the offset of the newline that ends the long line, or -1.
func (l *inspection) findNewline(ctx context.Context, h *handle, a *arena) (int64, error) {
	g := *l.long // a copy: a failed inspection must not be remembered
	l.long = &g
	if g.scanned < g.base.Offset {
		g.scanned = g.base.Offset
	}
	for g.scanned < l.st.Size {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		b := a.Scratch[:min(int64(len(a.Scratch)), l.st.Size-g.scanned)]
		if k, err := h.ReadAt(b, g.scanned); k < len(b) {
			return 0, err
		}
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			return g.scanned + int64(i), nil
		}
		g.scanned += int64(len(b))
	}
	from := max(g.base.Offset, g.scanned-AnchorSize)
	b := a.Scratch[:g.scanned-from]
	if k, err := h.ReadAt(b, from); k < len(b) {
		return 0, err
	}
	g.tail = hashOf(b)
	return -1, nil
}

// oversize hashes a line beyond the cap as far as it exists, and delivers its description once it has ended.
func (l *inspection) oversize(ctx context.Context, h *handle, a *arena, end int64) error {
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
		b := a.Scratch[:min(int64(len(a.Scratch)), upto-s.upto)]
		if k, err := h.ReadAt(b, s.upto); k < len(b) {
			return err
		}
		s.sha.Write(b)
		s.open.Write(b)
		s.upto += int64(len(b))
	}
	if end < 0 {
		l.buildChunk(nil)
		return nil
	}
	return l.oversizeChunk(h, a, end)
}

// oversizeChunk builds the chunk for a line beyond the cap.
func (l *inspection) oversizeChunk(h *handle, a *arena, end int64) error {
	o := &Oversize{Offset: l.base.Offset, Length: end - l.base.Offset}
	l.long.sum.sha.Sum(o.SHA256[:0])
	open := l.long.sum.open // a copy: the line may be offered again
	_, _ = open.Write([]byte{'\n'})
	l.walk.Leap(open, end+1)
	b := a.Bytes(min(AnchorSize, end+1))
	if k, err := h.ReadAt(b, end+1-int64(len(b))); k < len(b) {
		return err
	}
	if b[len(b)-1] != '\n' {
		return errChanged
	}
	l.beginChunk()
	l.chunk.Oversize = o
	l.endChunk(l.walk.Cursor(l.base.Generation), hashOf(b))
	l.more, l.partial = l.st.Size > end+1, 0
	return nil
}

// quiet reports whether the file has been unchanged long enough for its last line to be complete without a newline.
func (l *inspection) quiet() bool {
	return l.known.File.Stat == l.st && l.t.now()-l.unchangedSince >= l.t.cfg.Quiet
}

// offerProvisional adds a last line without newline to the chunk if it is a complete JSON object and the file is quiet.
func (l *inspection) offerProvisional(line []byte) {
	if !l.quiet() || overCap(int64(len(line)), l.t.cfg.Cap) || l.provisionalNow.Length > 0 {
		return
	}
	l.partialTried = true
	if text := bytes.TrimLeft(line, " \t\r"); len(text) == 0 || text[0] != '{' || !json.Valid(line) {
		return
	}
	if l.chunk == nil {
		l.beginChunk()
		l.endChunk(l.base, l.base.Anchor)
	}
	l.chunk.Provisional = line
}

// checkProvisional checks a last line that was delivered without its newline. If it is neither unchanged nor followed
// by its newline, that is a rewind to its start.
func (l *inspection) checkProvisional(h *handle, a *arena) error {
	p := l.known.Provisional
	if p.Length == 0 || l.base != l.known.Cursor {
		return nil
	}
	left := l.st.Size - l.base.Offset
	same := false
	if left >= p.Length {
		whole := prefixProof{From: h, Scratch: a.Scratch}
		got, err := whole.Hash(context.Background(), l.base.Offset, l.base.Offset+p.Length)
		if err != nil {
			return err
		}
		same = got == p.Hash
	}
	if same && left == p.Length {
		l.provisionalNow = p
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
