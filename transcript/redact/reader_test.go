package redact

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestReaderAt masks files of every size the same, however they are read.
func TestReaderAt(t *testing.T) {
	m := parallel(t)
	filler := strings.Repeat("some words of a document, line after line\n", 1<<15)
	key := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("MIIEvQIBADANBgkqhkiG9w0B\n", 90) + "-----END PRIVATE KEY-----\n"
	for name, at := range map[string][]int{
		"empty": {}, "small": {0}, "one segment": {segment + margin - 5000}, "two": {10, segment + margin + 1},
		"across an end": {segment - 1200, 2*segment - 7}, "at an end": {segment, 2 * segment},
	} {
		var b []byte
		for _, n := range at {
			for len(b) < n {
				b = append(b, filler[:min(len(filler), n-len(b))]...)
			}
			b = append(b, key...)
			b = append(b, secret+"\n"...)
		}
		whole := read(t, m.ReaderAt("x.md", bytes.NewReader(b), int64(len(b))), len(b), 1<<30)
		if len(whole) != len(b) || strings.Contains(string(whole), secret) || bytes.Contains(whole, []byte("MIIE")) {
			t.Errorf("%s: %d bytes, want %d; secrets are left", name, len(whole), len(b))
		}
		n := bytes.Count(whole, []byte("[github:"))
		kit.Check(t, n == len(at), "%s: %d tokens, want %d", name, n, len(at))
		again := read(t, m.ReaderAt("x.md", bytes.NewReader(b), int64(len(b))), len(b), 99_991)
		kit.Check(t, bytes.Equal(again, whole), "%s: read in pieces it is another", name)
		again = read(t, m.ReaderAt("x.md", bytes.NewReader(whole), int64(len(b))), len(b), 1<<20)
		kit.Check(t, bytes.Equal(again, whole), "%s: masked again", name)
	}
}

// read reads a file in pieces of a size.
func read(t *testing.T, r io.ReaderAt, size, piece int) []byte {
	t.Helper()
	var out []byte
	for len(out) < size {
		b := make([]byte, min(piece, size-len(out)))
		n, err := r.ReadAt(b, int64(len(out)))
		kit.Require(t, n >= len(b), "%v %v", n, err)
		out = append(out, b...)
	}
	n, err := r.ReadAt(make([]byte, 1), int64(size))
	kit.Check(t, n == 0 && err == io.EOF, "behind the end: %d, %v", n, err)
	return out
}

// TestBinaryFiles leaves what is no text alone, and takes text with odd bytes for text.
func TestBinaryFiles(t *testing.T) {
	m := parallel(t)
	for text, masked := range map[string]bool{
		"\x89PNG\x00\x00" + secret:             false,
		"\xff\xfe\x00\xd8b\x00 " + secret:      false, // half a pair
		"\xff\xfea\x00b\x00 " + secret:         true,  // appended to UTF-16
		"HOME=/root\x00TOKEN=" + secret:        true,
		"caf\xe9 " + secret:                    true,
		strings.Repeat("é\x00", 4000) + secret: true,
	} {
		out := read(t, m.ReaderAt("x", strings.NewReader(text), int64(len(text))), len(text), 1<<20)
		kit.Equal(t, fmt.Sprintf("%.20q became %.40q", text, out), (string(out) != text), masked)
	}
	var none *Masker
	r := strings.NewReader(secret)
	kit.Check(t, none.ReaderAt("x", r, 40) == io.ReaderAt(r), "without a masker it is another reader")
	short := m.ReaderAt("x", strings.NewReader("abc"), 10)
	n, err := short.ReadAt(make([]byte, 10), 0)
	kit.Check(t, n == 3 && err == io.EOF, "a file that became shorter: %d, %v", n, err)
}
