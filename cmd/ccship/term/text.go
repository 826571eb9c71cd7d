package term

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
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

// leastRoom is how many columns a wrapped line has at least: in a narrower window the terminal breaks lines itself.
const leastRoom = 20

// Wrap breaks a text of one line between words, so that its lines fit into so many columns. A word that is too long,
// such as a path, stays whole for the terminal to break, and so does a command between backticks: they are there to be
// copied. 0 columns break nothing.
func Wrap(text string, columns int) []string {
	if columns <= 0 || Width(text) <= columns {
		return []string{text}
	}
	room := max(columns, leastRoom)
	var lines []string
	line := ""
	for _, word := range words(text) {
		switch {
		case line == "":
			line = word
		case line == "→" || line == ">" || Width(line)+1+Width(word) <= room:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

// Hang wraps each line of a text, with as many spaces as hang says before what a line continues with, besides those
// that the line begins with.
func Hang(text string, columns, hang int) string {
	if columns <= 0 {
		return text
	}
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		rest := strings.TrimLeft(line, " ")
		begin := len(line) - len(rest)
		for i, part := range Wrap(rest, max(1, columns-begin-hang)) {
			if i == 0 {
				out = append(out, line[:begin]+part)
				continue
			}
			out = append(out, strings.Repeat(" ", begin+hang)+part)
		}
	}
	return strings.Join(out, "\n")
}

// words returns those of a text; a command between backticks is one.
func words(text string) (all []string) {
	open := false
	for _, word := range strings.Fields(text) {
		if open {
			all[len(all)-1] += " " + word
		} else {
			all = append(all, word)
		}
		open = open != (strings.Count(word, "`")%2 == 1)
	}
	return all
}

// measure counts columns as terminals do: two for the scripts of East Asia and for emoji, none for combining marks and
// for escape sequences such as colours.
func measure() displaywidth.Options { return displaywidth.Options{ControlSequences: true} }

// Width returns how many columns s takes.
func Width(s string) int { return measure().String(s) }

// Cut shortens s to width columns. A cut text ends with an ellipsis; its escape sequences stay. Of characters that take
// no column only a few stay behind another one: they would make a short text long.
func Cut(s string, width int) string {
	if width < 1 {
		return ""
	}
	return measure().TruncateString(thin(s), width, "…")
}

// mostMarks is how many characters without a width follow one another in a text: a flag of emoji tags has six.
const mostMarks = 6

// thin leaves out what is above mostMarks.
func thin(s string) string {
	run := 0
	return strings.Map(func(r rune) rune {
		if run++; !unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
			run = 0
		}
		if run > mostMarks {
			return -1
		}
		return r
	}, s)
}

// Pad fills s with spaces up to width columns.
func Pad(s string, width int) string { return s + strings.Repeat(" ", max(0, width-Width(s))) }

// Quote makes a text one word of a shell.
func Quote(s string) string {
	special := func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune("/._-~+:@%=,", r)
	}
	if s != "" && !strings.ContainsFunc(s, special) && !strings.ContainsAny(s[:1], "~=") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// OneLine joins the lines of s, with one space between words.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Printable is s in one line, without control characters: text that others wrote must not steer the terminal.
func Printable(s string) string { return OneLine(Harmless(s)) }

// Harmless replaces the characters of s that do more than show a glyph (see Steers), and bytes that are not UTF-8.
func Harmless(s string) string {
	return strings.Map(func(r rune) rune {
		if Steers(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// UTF8 says whether the locale of an environment is one of UTF-8.
func UTF8(env func(string) (string, bool)) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v, _ := env(name); v != "" {
			v = strings.ToLower(strings.ReplaceAll(v, "-", ""))
			return strings.Contains(v, "utf8")
		}
	}
	return false
}

// Printf writes words for people. Arguments stay within their line and steer nothing, regardless of who wrote them.
func Printf(w io.Writer, format string, args ...any) error {
	_, err := fmt.Fprintf(w, format, harmless(args)...)
	return err
}

// harmless is args with their texts made Harmless.
func harmless(args []any) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			out[i] = Harmless(arg)
		case error:
			out[i] = Harmless(arg.Error())
		case fmt.Stringer:
			out[i] = Harmless(arg.String())
		default:
			out[i] = arg
		}
	}
	return out
}

// Table is rows of cells below a head. A cell stays in its place, whatever is in it.
type Table struct{ w *tabwriter.Writer }

// NewTable begins a table with the names of its columns.
func NewTable(w io.Writer, head ...any) Table {
	t := Table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	t.Row(head...)
	return t
}

// Row writes a row. What goes wrong Flush says.
func (t Table) Row(cells ...any) {
	for i, cell := range harmless(cells) {
		if i > 0 {
			_, _ = t.w.Write([]byte{'\t'})
		}
		_, _ = fmt.Fprint(t.w, cell)
	}
	_, _ = t.w.Write([]byte{'\n'})
}

// Flush writes what is still to be written.
func (t Table) Flush() error { return t.w.Flush() }

// EscapeJSON escapes the characters of a JSON document that could steer a terminal; they are in its strings only.
func EscapeJSON(document string) string {
	if !strings.ContainsFunc(strings.ReplaceAll(document, "\n", ""), Steers) {
		return document
	}
	var b strings.Builder
	for _, r := range document {
		if r == '\n' || !Steers(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, "\\u%04x", unit)
		}
	}
	return b.String()
}
