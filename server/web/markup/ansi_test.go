package markup_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func TestANSI(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[31mred\x1b[0m plain":       `<span class="f1">red</span> plain`,
		"\x1b[1;32;44mx\x1b[22my\x1b[mz": `<span class="f2 b4 bo">x</span><span class="f2 b4">y</span>z`,
		"\x1b[91mx":                      `<span class="f9">x</span>`,
		"\x1b[107mx":                     `<span class="b15">x</span>`,
		"\x1b[38;5;196mx":                `<span class="f1">x</span>`,
		"\x1b[38;5;3mx":                  `<span class="f3">x</span>`,
		"\x1b[48;2;0;0;0mx":              `<span class="b0">x</span>`,
		"\x1b[38;2;1mx":                  `<span class="f0">x</span>`,
		"\x1b[38mx":                      `x`,
		"\x1b[7mx":                       `<span class="inv">x</span>`,
		"\x1b[31;7mx":                    `<span class="b1">x</span>`,
		"\x1b[2;3;4;9mx":                 `<span class="di it un st">x</span>`,
		"\x1b[99999999999999999999mx":    `x`,
		"\x1b[?25lx\x1b[2K\x1b[1Ay":      `xy`,
		"\x1b]0;title\x07x":              `x`,
		"\x1b]8;;https://evil.example\x1b\\x\x1b]8;;\x1b\\": `x`,
		"\x1b]8;;no end":       ``,
		"\x1bPq#0\x1b\\x":      `x`,
		"\u009b31mx":           `<span class="f1">x</span>`,
		"\x1b[31":              ``,
		"a\x1b":                `a`,
		"\x1b(Bx":              `x`,
		"\x1b\nx":              "\nx",
		"10%\r50%\r100%\ndone": "100%\ndone",
		"line\r\nline\r\n":     "line\nline\n",
		"_\bx":                 "x",
		"é\b\b\by":             "y",
		"\x1b[31m<b>\x1b[0m":   `<span class="f1">&lt;b&gt;</span>`,
	} {
		kit.Equal(t, in, ansiOf(in), want)
	}
}

// FuzzANSI: whatever a program prints, only spans with classes come out.
func FuzzANSI(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Add("\x1b[31;;;38;5m\x1b[\x1b[m\x1b]\x1b")
	f.Fuzz(func(t *testing.T, s string) {
		got := ansiOf(s)
		for _, tag := range tags(t, got) {
			kit.Equal(t, fmt.Sprintf("%q has <…>: %s", s, got), tag, "span class")
		}
		kit.Equal(t, fmt.Sprintf("%q leaves something open: %s", s, got), strings.Count(got, "<span"),
			strings.Count(got, "</span>"))
	})
}
