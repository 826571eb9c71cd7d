package term

import (
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func TestWrap(t *testing.T) {
	for _, test := range []struct {
		text    string
		columns int
		want    []string
	}{
		{"one two", 0, []string{"one two"}},
		{"the server at home cannot be reached", 24, []string{"the server at home", "cannot be reached"}},
		{"run `ccship setup --server-url URL` again", 24, []string{"run", "`ccship setup --server-url URL`", "again"}},
		{"→ start the daemon that does not run", 24, []string{"→ start the daemon that", "does not run"}},
		{"장바구니 합계 반올림 오류를 고치기", 21, []string{"장바구니 합계 반올림", "오류를 고치기"}},
		{"\x1b[1mccship\x1b[0m: watching new lines", 24, []string{"\x1b[1mccship\x1b[0m: watching new", "lines"}},
	} {
		got := Wrap(test.text, test.columns)
		kit.Check(t, slices.Equal(got, test.want), "%q at %d: %q, want %q", test.text, test.columns, got, test.want)
	}
}

// Every word is there once, and every line fits unless one word of it does not.
func TestHang(t *testing.T) {
	text := "ccship: the server at http://127.0.0.1:5000 cannot be reached: connection refused\n  hint: check that it runs, then `ccship sync`"
	for columns := 1; columns < 100; columns++ {
		got := Hang(text, columns, 2)
		kit.Require(t, strings.Join(strings.Fields(got), " ") == strings.Join(strings.Fields(text), " "),
			"at %d: %q", columns, got)
		for line := range strings.SplitSeq(got, "\n") {
			room := max(columns, leastRoom+4)
			kit.Check(t, Width(line) <= room || len(words(line)) <= 1, "at %d: %q is longer", columns, line)
		}
	}
}
