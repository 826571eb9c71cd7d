package term

import (
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// colour is a colour that ccship itself writes. No other escape sequence reaches a terminal through Safe.
var colour = regexp.MustCompile("\x1b\\[(?:0|1|2|31|32|33|36)m")

// Safe is text as a terminal may get it, regardless of who wrote it: lines and tabs stay, other control characters,
// bytes that are not UTF-8, and characters that turn the order of others around or hide become spaces. With colours,
// those of ccship stay too.
func Safe(text string, colours bool) string {
	if !colours || !strings.Contains(text, "\x1b[") {
		return safe(text)
	}
	var b strings.Builder
	for {
		at := colour.FindStringIndex(text)
		if at == nil {
			return b.String() + safe(text)
		}
		b.WriteString(safe(text[:at[0]]) + text[at[0]:at[1]])
		text = text[at[1]:]
	}
}

func safe(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && Steers(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// Steers reports whether a character does more to a terminal than show a glyph: it is a control character, changes the
// order in which others are shown, or is not seen at all.
func Steers(r rune) bool {
	switch {
	case r < ' ', r >= 0x7f && r < 0xa0: // C0, DEL and C1
		return true
	case r == '\u061c', r == '\u200e', r == '\u200f', r >= '\u202a' && r <= '\u202e',
		r >= '\u2066' && r <= '\u2069': // bidi
		return true
	case r == '\u2028', r == '\u2029', r == '\u200b', r >= '\u2060' && r <= '\u2064', r >= '\u206a' && r <= '\u206f',
		r == '\ufeff', r >= '\ufff9' && r <= '\ufffb', r == '\u00ad', r >= '\u180b' && r <= '\u180f',
		r >= 0x1d173 && r <= 0x1d17a, r >= 0xe0000 && r <= 0xe0fff, unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return true
	}
	return false
}

// SafeWriter writes to w what Safe leaves of a stream without colours. It returns w itself if that is no terminal and
// only is true: a file or a pipe gets every byte.
func SafeWriter(w io.Writer, only bool) io.Writer {
	if _, terminal := Columns(w); only && !terminal {
		return w
	}
	return &safeWriter{w: w}
}

type safeWriter struct {
	w    io.Writer
	rest []byte // the beginning of a character
}

// Unwrap returns what it writes to.
func (s *safeWriter) Unwrap() io.Writer { return s.w }

// Write counts what it was given, not what it writes.
func (s *safeWriter) Write(p []byte) (int, error) {
	text := append(s.rest, p...)
	end := len(text)
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if first := text[len(text)-back]; utf8.RuneStart(first) {
			if !utf8.FullRune(text[len(text)-back:]) {
				end = len(text) - back
			}
			break
		}
	}
	s.rest = append([]byte(nil), text[end:]...)
	if _, err := io.WriteString(s.w, Safe(string(text[:end]), false)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Bytes returns what a SafeWriter writes to, for bytes that are no text; another writer is itself.
func Bytes(w io.Writer) io.Writer {
	if s, ok := w.(*safeWriter); ok {
		return s.w
	}
	return w
}
