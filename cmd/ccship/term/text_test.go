package term

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ccship/ccship/e2e/kit"
)

func TestSafe(t *testing.T) {
	for _, test := range []struct {
		name, text, want string
		colours          bool
	}{
		{"plain", "안녕 é\t漢字\n👩‍💻", "안녕 é\t漢字\n👩‍💻", false},
		{"clipboard", "a\x1b]52;c;aGk=\x07b", "a ]52;c;aGk= b", true},
		{"clear screen", "a\x1b[2Jb", "a [2Jb", true},
		{"clear screen in C1", "a\u009b2Jb", "a 2Jb", true},
		{"C1 as a byte", "a\x9b2Jb", "a?2Jb", true},
		{"order of letters", "a\u202egnp.exe\u2066b", "a gnp.exe b", true},
		{"hidden letters", "a\U000e0041\u200bb", "a  b", true},
		{"letters without a glyph", "a\u00ad\u180e\u034f\u3164\uffa0\U000e0101b", "a      b", true},
		{"carriage return", "good\rbad ", "good bad ", true},
		{"our colour", "\x1b[32mok\x1b[0m", "\x1b[32mok\x1b[0m", true},
		{"our colour where there are none", "\x1b[32mok\x1b[0m", " [32mok [0m", false},
		{"another colour", "\x1b[8mhidden", " [8mhidden", true},
		{"colour within a sequence", "\x1b]0;\x1b[31mx\x07", " ]0;\x1b[31mx ", true},
	} {
		kit.Equal(t, test.name, Safe(test.text, test.colours), test.want)
	}
}

// A file or a pipe gets every byte.
func TestSafeWriterToFile(t *testing.T) {
	var out bytes.Buffer
	const text = "\x1b[2J\xff"
	_, err := SafeWriter(&out, true).Write([]byte(text))
	kit.Check(t, err == nil && out.String() == text, "%q %v", out.String(), err)
}

// FuzzSafe: nothing that steers a terminal comes through, whatever the text and however a stream is cut.
func FuzzSafe(f *testing.F) {
	for _, text := range []string{"a\x1b]52;c;aGk=\x07", "\u009b2J\x9b", "\x1b[\x1b[31m2J", "\u202e\U000e0041\r", "\x1b[32mok\x1b[0m\n\t", "\xe2\x80"} {
		f.Add(text, 1, true)
		f.Add(text, 3, false)
	}
	f.Fuzz(func(t *testing.T, text string, cut int, colours bool) {
		got := Safe(text, colours)
		kit.Check(t, utf8.ValidString(got), "%q is no UTF-8", got)
		left := got
		if colours {
			left = colour.ReplaceAllString(got, "")
		}
		kit.Check(t, !strings.ContainsFunc(left, func(r rune) bool { return r != '\n' && r != '\t' && Steers(r) }),
			"%q leaves %q", text, got)
		again := Safe(got, colours)
		kit.Check(t, again == got, "%q, then %q", got, again)
		var whole, cutUp bytes.Buffer
		w := SafeWriter(&cutUp, false)
		for rest := []byte(text); len(rest) > 0; {
			n := min(max(1, cut), len(rest))
			kit.Try(w.Write(rest[:n])).Must(t)
			rest = rest[n:]
		}
		whole.WriteString(Safe(text, false))
		valid := utf8.ValidString(text)
		kit.Check(t, !valid || cutUp.String() == whole.String(), "cut up: %q, want %q", cutUp.String(), whole.String())
		kit.Check(t, !strings.ContainsFunc(cutUp.String(), func(r rune) bool { return r != '\n' && r != '\t' && Steers(r) }),
			"%q leaves %q in a stream", text, cutUp.String())
	})
}

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

func TestShellQuoted(t *testing.T) {
	for text, want := range map[string]string{"/a/b-c": "/a/b-c", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "~x": "'~x'", "--a=b:c,d": "--a=b:c,d", "=x": "'=x'", "a\nb": "'a\nb'", "$(x)": "'$(x)'"} {
		got := Quote(text)
		kit.Check(t, got == want, "%q: %s, want %s", text, got, want)
	}
}

func TestPrintable(t *testing.T) {
	kit.Equal(t, "Printable", Printable("a\x1b[31m\nb\xff"), "a [31m b?")
}

func TestUTF8(t *testing.T) {
	for locale, want := range map[string]bool{"LANG=C.UTF-8": true, "LANG=en_GB.utf8": true, "LANG=C": false, "": false, "LC_ALL=C LANG=C.UTF-8": false, "LC_CTYPE=UTF-8 LANG=C": true} {
		env := map[string]string{}
		for _, v := range strings.Fields(locale) {
			name, value, _ := strings.Cut(v, "=")
			env[name] = value
		}
		kit.Equal(t, locale, UTF8(func(name string) (string, bool) { v, ok := env[name]; return v, ok }), want)
	}
}
