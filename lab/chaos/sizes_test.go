//go:build unix

package chaos

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestSizes: what is large, long, many, or strangely named.
func TestSizes(t *testing.T) {
	t.Parallel()
	const group = "sizes"
	rows(t, []row{
		{group: group, fault: "lines of 20 to 60 MiB", long: 12, do: func(r *room) {
			c := r.newTalk(2)
			kit.Must(r.t, appendTo(c.path, c.long((20+r.rng.IntN(40))<<20)))
			c.add(r, 2)
			r.tell()
		}},
		{group: group, fault: "lines of 65 to 300 MiB, above line_cap, and cut again", long: 8, do: (*room).overlong},
		{group: group, fault: "a file of 3 GB", long: 1, do: func(r *room) { r.huge(3 << 30) }},
		{group: group, fault: "50 000 sessions", long: 1, do: func(r *room) {
			r.large = true
			for range 50_000 {
				c := r.talkAt(fmt.Sprintf("-many-%d", r.rng.IntN(200)), uuid(r.rng))
				kit.Must(r.t, appendTo(c.path, c.line(500)))
			}
			r.tell()
		}},
		{group: group, fault: "names of all kinds", short: 1, long: 20, do: (*room).strangeNames},
	})
}

// long is one line of so many bytes.
func (c *talk) long(size int) []byte {
	line := c.line(400)
	at := bytes.Index(line, []byte(`"content":"`)) + len(`"content":"`)
	filler := bytes.Repeat([]byte("0123456789 abcdef "), size/18)
	return append(append(append([]byte{}, line[:at]...), filler...), line[at:]...)
}

// overlong writes a line above the cap: the server gets its length and hash, which verify accepts. Then it is cut off.
func (r *room) overlong() {
	r.t.Helper()
	c := r.newTalk(3)
	whole := kit.Try(os.Stat(c.path)).Must(r.t)
	kit.Must(r.t, appendTo(c.path, c.long((65+r.rng.IntN(236))<<20)))
	c.add(r, 2)
	r.settle()
	r.tell()
	if v := r.ccship("verify"); v.code != 0 {
		r.out.Wrong++
		r.t.Errorf("verify with a line above the cap: %d %s", v.code, v.text())
	}
	kit.Must(r.t, os.Truncate(c.path, whole.Size()))
	c.add(r, 2)
}

// huge writes one large file, in pieces.
func (r *room) huge(size int) {
	r.t.Helper()
	r.large = true
	c := r.newTalk(1)
	var piece []byte
	for written := 0; written < size; written += len(piece) {
		piece = piece[:0]
		for len(piece) < 8<<20 {
			piece = append(piece, c.line(8000)...)
		}
		kit.Must(r.t, appendTo(c.path, piece))
	}
	r.tell()
}

// strangeNames writes transcripts in folders, and others under names, that nobody expects.
func (r *room) strangeNames() {
	r.t.Helper()
	for _, folder := range []string{
		"-with space", "-한국어-폴더", "-emoji-🦊", `-quote"'`, "-back\\slash", "-new\nline", "-tab\tescape\x1b[31m", "-percent%2e%2e", "--",
		"-" + strings.Repeat("x", 250), "-semi;colon$(true)`true`", "-combining-é", "-no-break\u00a0", "-right-to-left-\u202e",
	} {
		c := r.talkAt(folder, uuid(r.rng))
		c.add(r, 2)
	}
	bystanders := filepath.Join(r.projects(), "-bystanders")
	kit.Must(r.t, os.MkdirAll(bystanders, 0o700))
	for i, name := range []string{"no uuid.jsonl", "with\nnewline.jsonl", "\x01control.jsonl", "..jsonl", ".jsonl", "a.JSONL", "a.jsonl.tmp", "%2f.jsonl"} {
		kit.Must(r.t, os.WriteFile(filepath.Join(bystanders, name), fmt.Appendf(nil, `{"type":"user","n":%d}`+"\n", i), 0o600))
	}
	r.tell()
}
