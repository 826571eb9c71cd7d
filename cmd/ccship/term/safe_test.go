package term

import (
	"bytes"
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
