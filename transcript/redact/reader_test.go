package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

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

// TestNested has secrets behind escapes of several layers, as in transcripts that show transcripts.
func TestNested(t *testing.T) {
	t.Parallel()
	m, err := New(Key{1})
	kit.Require(t, err == nil, "%v", err)
	const secret = "Zx81kQ9vLm3pRt7wYb2c"
	for _, text := range []string{
		`Bearer "` + secret + `"`, "Bearer\n" + secret, `tool --password "` + secret + `"`, "tool --password \\\n" + secret,
		"tool --password \"" + secret + "\"\nnext", `{"name":"DB_PASSWORD","value":"` + secret + `"}`,
	} {
		line := []byte(text)
		for n := 1; n <= 3; n++ {
			line, err = json.Marshal(map[string]string{"content": string(line)})
			kit.Require(t, err == nil, "%v", err)
			masked, _ := m.Line(line)
			kit.Check(t, !bytes.Contains(masked, []byte(secret)), "in %d layers: %s", n, masked)
		}
	}
}

// TestTokenEnds leaves the quote behind a token as it is.
func TestTokenEnds(t *testing.T) {
	m := parallel(t)
	const random = "CHtVvARV6fDHI5AHbZZlT3q8Xw2Jk9Lm4Np7Rs1Uv5Yz"
	for _, token := range []string{"sk-" + random[:22], "pa-" + random[:43], "fnAD" + random[:36], "K001" + random[:27], "AAAAAAAAAAAAAAAAAAAAAA" + random} {
		in := `{"b":` + quote(`{"x":"`+token+`"}`) + `}`
		out, ranges := m.Object([]byte(in))
		kit.Check(t, len(ranges) > 0 && strings.HasSuffix(string(out), `\"}"}`), "%s became %s", in, out)
	}
}

// TestLongStrings masks strings that are searched in parts, wherever the parts begin, with memory for one part.
func TestLongStrings(t *testing.T) {
	m := parallel(t)
	for _, filler := range []string{`\\`, `\ud83d\ude00`, `\\u0041`} {
		for shift := range len(filler) + 1 {
			var b strings.Builder
			b.WriteString(`{"a":"` + strings.Repeat("x", shift))
			for _, end := range []int{margin, segment - margin, segment - 20, segment, 2*segment + margin} {
				for b.Len() < end {
					b.WriteString(filler)
				}
				b.WriteString("\\n" + secret + "\\n")
			}
			b.WriteString(`","b":"-----BEGIN PRIVATE KEY-----"}`)
			in, largest := b.String(), 0
			out, ranges := m.mask([]byte(in), func(s *scratch, line []byte) {
				m.inObject(s, line)
				largest = max(largest, cap(s.levels[0].b))
			})
			kit.Check(t, len(ranges) == 5 && !strings.Contains(string(out), secret), "%s, %d: %d secrets are masked, want 5",
				filler, shift, len(ranges))
			check(t, m, in, string(out))
			kit.Check(t, largest <= 2*segment, "%s: a text of %d bytes is decoded at once", filler, largest)
		}
	}
	text := strings.Repeat("some words\n", 2*segment/11) + secret
	if out, ranges := m.Text([]byte(text)); len(ranges) != 1 || strings.Contains(string(out), secret) {
		t.Errorf("in a text %d secrets are masked", len(ranges))
	}
}

// TestOutside: no offset is within an escape.
func TestOutside(t *testing.T) {
	for text, want := range map[string][]int{
		`a\nb`:             {0, 1, 3, 3, 4},
		`\\n`:              {0, 2, 2, 3},
		`\\\n`:             {0, 2, 2, 4, 4},
		`\u00e9b`:          {0, 6, 6, 6, 6, 6, 6, 7},
		`\\u00e9b`:         {0, 2, 2, 3, 4, 5, 6, 7, 8},
		"abc":              {0, 1, 2, 3},
		`\u00e9\u00e9`[:9]: {0, 6, 6, 6, 6, 6, 6, 9, 9, 9},
	} {
		for at, want := range want {
			got := outside([]byte(text), window{0, len(text)}, at)
			kit.Check(t, got == want, "%s: %d becomes %d, want %d", text, at, got, want)
		}
	}
}

// TestReference compares what is masked with what a slow finder masks that tries expressions everywhere: rules without
// literals, without a check of what is next to them, and without automatons.
func TestReference(t *testing.T) {
	fast := kit.Try(New(Key{1})).Must(t)
	var slow []*rule
	for _, r := range fast.rules {
		if !r.Token && r.Before < 1000 {
			slow = append(slow, r)
		}
	}
	const value = "Zx81kQ9vLm3pRt7wYb2c"
	slots := [][]string{
		{"", "\n", "x ", "- ", "12→", `"`, "export ", "?a=1&"},
		{"password", " pw", "db_secret", "api key", "accessToken", "token", "algolia_key", "docker login", "machine h login kim password", "[h.x]:587"},
		{"", "", `"`, "']", " ", "  ", "\u200b"},
		{":", "=", ":=", "=>", " ", " -p ", ` : {"value":`, " kim:"},
		{"", " ", "\n", "\\\n", `"`, "'", "!vault ", "\t"},
		{value, value, value + ";", "k3Jd81!mPq2+x9", "config.Value", "Uint8Array", "two words"},
		{"", "\n", `"`, "'", ",", "}", "\\\n", "</a>", " end"},
	}
	rapid.Check(t, func(t *rapid.T) {
		text := ""
		for _, slot := range slots {
			text += rapid.SampledFrom(slot).Draw(t, "part")
		}
		plainText := text
		for range rapid.IntRange(0, 3).Draw(t, "layers") {
			text = quote(map[string]string{"content": text})
		}
		out, _ := fast.Line([]byte(text))
		for _, r := range slow {
			loc := r.expression().FindSubmatchIndex([]byte(plainText))
			if loc == nil {
				continue
			}
			from, to := r.secret(loc)
			secret := []byte(plainText)[from:to]
			if from < 0 || !r.allowed([]byte(plainText), loc, secret, "") || !slices.Contains([]string{value, "k3Jd81!mPq2+x9"}, string(secret)) {
				continue
			}
			if strings.Count(string(out), string(secret)) > 0 {
				t.Fatalf("%s finds %q in %q, which became %q", r.Name, secret, plainText, out)
			}
		}
	})
}
