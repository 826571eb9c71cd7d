package tail

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ccship/ccship/e2e/kit"
)

// walkAll walks over text in pieces that end where cuts say, at line ends.
func walkAll(text []byte, piece int) (Cursor, []Mark) {
	var c Cursor
	var marks []Mark
	for c.Offset < int64(len(text)) {
		end := c.Offset
		for end < int64(len(text)) && end-c.Offset < int64(piece) {
			end += int64(bytes.IndexByte(text[end:], '\n') + 1)
		}
		var w prefixWalker
		w.Start(c, text[c.Mark:c.Offset])
		w.Add(text[c.Offset:end])
		before := text[max(0, c.Offset-AnchorSize):c.Offset]
		to := w.Cursor(c.Generation)
		to.Anchor = anchorOf(before, text[c.Offset:end])
		c, marks = to, append(marks, w.marks...)
	}
	return c, marks
}

// checkWalk holds a walk to what is promised of its marks and its cursor. whole: it was made in one piece.
func checkWalk(t *testing.T, text []byte, c Cursor, marks []Mark, whole bool) {
	t.Helper()
	last := int64(0)
	for _, m := range marks {
		part := text[last:m.Offset]
		if m.Offset <= last || text[m.Offset-1] != '\n' || m.Hash != hashOf(part) || m.Line != int64(bytes.Count(text[:m.Offset], []byte{'\n'})) {
			t.Fatalf("mark %+v after %d", m, last)
		}
		longest := longestLine(part)
		kit.Require(t, len(part) <= 2*markGap || len(part)-longest <= markGap, "%d bytes without a mark, the longest line has %d", len(part), longest)
		kit.Require(t, longest < markGap || longest >= len(part) || !whole, "a line of %d bytes shares its mark with %d others", longest, len(part)-longest)
		last = m.Offset
	}
	want := Cursor{
		Offset: int64(len(text)), Line: int64(bytes.Count(text, []byte{'\n'})), Mark: last,
		Anchor: hashOf(text[max(0, len(text)-AnchorSize):]), Segment: hashOf(text[last:]),
	}
	kit.Require(t, c == want && len(text)-int(last) < markGap, "cursor %+v, want %+v", c, want)
}

func longestLine(b []byte) (n int) {
	for line := range bytes.Lines(b) {
		n = max(n, len(line))
	}
	return n
}

func TestWalk(t *testing.T) {
	texts := map[string]string{
		"nothing": "", "blank": "\n\n\n", "short": lines("s", 2000, 150), "one long": lines("l", 1, 1<<20),
		"mixed":            strings.Repeat(lines("s", 90, 700)+lines("l", 2, 70<<10)+lines("s", 3, 20), 5),
		"just the gap":     strings.Repeat(strings.Repeat("x", markGap-1)+"\n", 4),
		"just below":       strings.Repeat(strings.Repeat("x", markGap-2)+"\n", 4),
		"long, then short": lines("l", 1, 300<<10) + lines("s", 1, 10),
	}
	for name, text := range texts {
		for _, piece := range []int{1, 1000, 100 << 10, 10 << 20} {
			c, marks := walkAll([]byte(text), piece)
			t.Run(name, func(t *testing.T) { checkWalk(t, []byte(text), c, marks, piece > len(text)) })
		}
	}
}

func TestFirstOver(t *testing.T) {
	for _, tt := range []struct {
		text  string
		limit int64
		want  int
	}{
		{"", 3, -1}, {"abc\n", 3, -1}, {"abcd\n", 3, 0}, {"a\nabcd\nb\n", 3, 2}, {"a\nabc\nabc\n", 3, -1}, {"a\nabcd", 3, 2}, {"abc", 3, -1},
	} {
		kit.Equal(t, fmt.Sprintf("past.FirstOver(%q, %d)", tt.text, tt.limit), firstOver([]byte(tt.text), tt.limit), tt.want)
	}
}

func TestHolds(t *testing.T) {
	text := []byte(strings.Repeat(lines("s", 90, 700)+lines("l", 1, 200<<10), 3))
	path := filepath.Join(t.TempDir(), "a.jsonl")
	c, marks := walkAll(text, 1<<20)
	for _, at := range []int{-1, 0, 5000, len(text) / 2, len(text) - 1} {
		changed := bytes.Clone(text)
		if at >= 0 {
			changed[at] ^= 1
		}
		kit.Must(t, os.WriteFile(path, changed, 0o600))
		if ok, err := Holds(path, marks, c); ok != (at < 0) || err != nil {
			t.Errorf("byte %d changed: %v, %v", at, ok, err)
		}
		proof := prefixProof{From: bytes.NewReader(changed), Marks: marks, Cursor: c, Scratch: make([]byte, 1000)}
		last, all, err := proof.Unchanged(context.Background())
		kit.Check(t, err == nil && all == (at < 0) && (at < 0 || int(last.Offset) <= at),
			"byte %d changed: unchanged up to %d, all %v, %v", at, last.Offset, all, err)
	}
	kit.Must(t, os.WriteFile(path, text[:len(text)-1], 0o600))
	ok, err := Holds(path, marks, c)
	kit.Check(t, !ok && err == nil, "shorter: %v, %v", ok, err)
	ok, err = Holds(path, marks[1:], c)
	kit.Check(t, !ok && err == nil, "a mark is missing: %v, %v", ok, err)
	_, err = Holds(path+"x", marks, c)
	kit.Check(t, err != nil, "no error for no file")
}

// FuzzSplit reads a file that grows by any bytes in any pieces, and wants every whole line once, in order, with right
// hashes, under a cap so low that the longest are oversize.
func FuzzSplit(f *testing.F) {
	f.Add([]byte("{}\n{\"a\":1}\n\n\r\nxx"), uint8(3), uint8(7))
	f.Add([]byte("\n\n\x00\n}{\xff\xfe\n"), uint8(1), uint8(1))
	f.Add([]byte(strings.Repeat("long", 40)+"\n{}\n"), uint8(50), uint8(16))
	f.Add([]byte("no end at all"), uint8(5), uint8(200))
	f.Fuzz(func(t *testing.T, text []byte, piece, limit uint8) {
		mem := newMemory(t)
		tl := New(Config{Cap: int64(limit) + 1, TurnBytes: 8, Quiet: 1}, mem, mem)
		path := filepath.Join(t.TempDir(), "a.jsonl")
		file := kit.Try(os.Create(path)).Must(t)
		defer file.Close()
		tr := Tracked{File: File{ID: 1, Path: path, Name: "a", Copy: 1}}
		var long *longLine
		for at, more := 0, false; at < len(text) || more; {
			if !more {
				end := min(at+int(piece)+1, len(text))
				kit.Try(file.Write(text[at:end])).Must(t)
				at = end
			}
			st, _, _ := statEntry(path)
			l := inspection{t: tl, known: tr, expect: st, budget: 8, alone: true, unchangedSince: -1 << 62, long: long}
			kit.Must(t, l.run(t.Context(), newArena(8, AnchorSize)))
			more, long, tr.File.Stat = l.more, l.long, l.st
			if l.chunk != nil {
				r := mem.take(l.chunk)
				kit.Require(t, r.Err == nil, "%v", r.Err)
				tr = l.chunk.Tracked
			}
		}
		k := mem.files[1]
		whole := text[:lastLine(text)]
		if k == nil {
			k = &kept{}
		}
		if !bytes.Equal(k.content, dots(whole, int(limit)+1)) || k.Cursor.Generation > 0 && k.provisions == 0 {
			t.Errorf("read %q of %q, %+v", k.content, text, k.Cursor)
		}
	})
}

// TestLineReader: lines of any length, below and above the buffer and the cap, are read as they are.
func TestLineReader(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 4))
	for range 300 {
		limit := []int64{0, 1, 15, 16, 17, 40, 1000}[rng.IntN(7)]
		var file []byte
		var want [][]byte
		for range rng.IntN(8) {
			line := bytes.Repeat([]byte{'a' + byte(rng.IntN(3))}, []int{0, 1, 14, 15, 16, 17, 39, 40, 41, 100, 3000}[rng.IntN(11)])
			file, want = append(append(file, line...), '\n'), append(want, line)
		}
		half := len(want) > 0 && rng.IntN(2) == 0 && len(want[len(want)-1]) > 0
		if half {
			file = file[:len(file)-1]
		}
		keep, offset := rng.IntN(2) == 0, int64(0)
		r := NewLineReader(iotest.OneByteReader(bytes.NewReader(file)), limit, []int64{0, int64(len(file)), 1 << 20}[rng.IntN(3)])
		r.Keep = keep
		for i, line := range want {
			l, err := r.Next()
			over := int64(len(line)) > limit
			whole := append(slices.Clone(line), '\n')
			switch {
			case err != nil || l.Index != int64(i) || l.Offset != offset || l.Length != int64(len(line)) || l.Oversize != over ||
				l.Newline == (half && i == len(want)-1):
				t.Fatalf("line %d of %d bytes, cap %d: %+v, %v", i, len(line), limit, l, err)
			case over && (l.SHA256 != sha256.Sum256(line) || l.Hash != sha256.Sum256(whole)):
				t.Fatalf("line %d: wrong digest", i)
			case (!over || keep) && (!bytes.Equal(l.Raw, line) || !bytes.Equal(l.Whole, file[offset:min(offset+int64(len(whole)), int64(len(file)))])):
				t.Fatalf("line %d: %q and %q, want %q", i, l.Raw, l.Whole, line)
			case over && !keep && (l.Raw != nil || l.Whole != nil):
				t.Fatalf("line %d is kept", i)
			}
			offset += int64(len(whole))
		}
		_, err := r.Next()
		kit.Require(t, errors.Is(err, io.EOF), "%v", err)
	}
	broken := errors.New("broken")
	r := NewLineReader(io.MultiReader(bytes.NewReader([]byte("a\nb")), iotest.ErrReader(broken)), 9, 9)
	_, err := r.Next()
	kit.Check(t, err == nil, "%v", err)
	l, err := r.Next()
	kit.Check(t, errors.Is(err, broken), "%+v, %v", l, err)
}

// TestPrefixGoesOn: a cursor that a Prefix made is one that the tailer takes for its own: it reads on behind it, and
// still finds out that the bytes before it changed.
func TestPrefixGoesOn(t *testing.T) {
	for name, rewritten := range map[string]bool{"as it was": false, "rewritten": true} {
		t.Run(name, func(t *testing.T) { goOn(t, rewritten) })
	}
}

func goOn(t *testing.T, rewritten bool) {
	w := newWorld(t)
	body := lines("a", 400, 1000) // several marks
	k := w.follow("p/a.jsonl", body)
	var p Prefix
	half := strings.Index(body[len(body)/2:], "\n") + len(body)/2 + 1
	for _, line := range strings.SplitAfter(body[:half], "\n") {
		p.Add([]byte(line))
	}
	if p.Cursor(0).Offset != int64(half) || len(p.Marks()) == 0 {
		t.Fatalf("cursor %+v, %d marks", p.Cursor(0), len(p.Marks()))
	}
	w.mem.do(func() { // another caller set it to the middle, in another generation
		f := w.mem.files[k.File.ID]
		f.Cursor, f.Verified = p.Cursor(7), Stat{}
		f.content, f.marks = bytes.Clone(f.content[:half]), p.Marks()
	})
	if rewritten {
		w.write("p/a.jsonl", "{\"changed\":true}\n"+body[len("{\"changed\":true}\n"):])
	}
	w.tail.Reload(k.File.ID, 12345)
	want := uint32(7)
	if rewritten {
		want = 8
	}
	w.until("it goes on", func() bool {
		f := w.mem.named("a")[0]
		return f.Cursor.Generation == want && f.Cursor.Offset == int64(len(body))
	})
	w.main("p/a.jsonl")
	w.stop()
}

// meanwhile is a memory of which something changes after it was loaded, before the tailer has what was.
type meanwhile struct {
	*memory
	then func()
}

func (m meanwhile) Load(ctx context.Context) ([]Tracked, error) {
	all, err := m.memory.Load(ctx)
	m.then()
	return all, err
}

// TestReloadWhileLoading: a cursor that is set back while the tailer loads the one before counts, although no byte of
// the file changes any more.
func TestReloadWhileLoading(t *testing.T) {
	w := newWorld(t)
	k := w.follow("p/a.jsonl", lines("a", 3, 100))
	w.stop()
	w.prep = func(t *Tailer) {
		t.cursors = meanwhile{w.mem, func() {
			w.mem.do(func() {
				f := w.mem.files[k.File.ID]
				f.Cursor, f.Verified, f.content, f.marks = Cursor{Generation: 7}, Stat{}, nil, nil
			})
			t.Reload(k.File.ID)
		}}
	}
	w.start()
	w.until("it is read from there", func() bool {
		c := w.mem.named("a")[0].Cursor
		return c.Generation == 7 && c.Line == 3
	})
	w.main("p/a.jsonl")
}
