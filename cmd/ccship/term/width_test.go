package term

import (
	"regexp"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func TestWidth(t *testing.T) {
	for s, want := range map[string]int{
		"": 0, "abc": 3, "가나": 4, "e\u0301": 1, "漢字!": 5, "💾": 2, "…": 1, "\u1112\u1161\u11ab": 2, "\u200b": 0, "\x1b[31m가\x1b[0m": 2,
	} {
		got := Width(s)
		kit.Check(t, got == want, "%q takes %d columns, want %d", s, got, want)
	}
	kit.Equal(t, "Pad", Pad("가", 4)+"|", "가  |")
}

func TestCut(t *testing.T) {
	for _, test := range []struct {
		line  string
		width int
		want  string
	}{
		{"", 5, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"abc", 1, "…"},
		{"가나다라", 5, "가나…"},
		{"\x1b[31mabc\x1b[0m", 3, "\x1b[31mabc\x1b[0m"},
		{"\x1b[31mabcd\x1b[0m", 3, "\x1b[31mab…\x1b[0m"},
		{"a\x1b[31mbcd\x1b[0mef", 3, "a\x1b[31mb…\x1b[0m"},
		{"\x1b[31mab\x1b[0mcd", 3, "\x1b[31mab\x1b[0m…"},
		{"● é漢x", 4, "● é…"},
	} {
		got := Cut(test.line, test.width)
		kit.Check(t, got == test.want, "cut of %q to %d is %q, want %q", test.line, test.width, got, test.want)
	}
}

// A cut line fits, whatever its script: what wraps leaves traces on the screen.
func TestCutFits(t *testing.T) {
	colour := regexp.MustCompile("\x1b\\[[0-9]*m")
	for _, line := range []string{"\x1b[32m안녕하세요 여러분\x1b[0m", "漢字かな交じり文 x", "💾💾💾💾💾💾", "e\u0301e\u0301e\u0301e\u0301"} {
		for width := range 12 {
			got := Cut(line, width)
			kit.Check(t, Width(colour.ReplaceAllString(got, "")) <= width, "%q cut to %d columns is %q", line, width, got)
		}
	}
}
