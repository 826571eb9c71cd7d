package term

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf16"
)

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
