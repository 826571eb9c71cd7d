package redact

import (
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

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
