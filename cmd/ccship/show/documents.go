package show

import (
	"strings"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
)

// Documents returns a session's linked documents, one a line.
func (v View) Documents(list control.Documents) string {
	list = plain(list)
	if len(list.Documents) == 0 {
		return "nothing is linked\n"
	}
	var table [][]string
	for _, d := range list.Documents {
		table = append(table, []string{term.Cut(term.Printable(d.Path), 48), v.document(d)})
	}
	return v.table("<<", table)
}

// document returns what is known of one.
func (v View) document(d control.Document) string {
	size := amount.Size(d.Size)
	switch {
	case d.Deleted:
		size = "deleted"
	case d.TooLarge:
		size += ", too large to send"
	}
	parts := []string{amount.Counted(d.Version, "version", "versions"), "changed " + v.when(d.ChangedAt), size}
	if d.Problem != "" {
		parts = append(parts, term.Printable(d.Problem))
	}
	return strings.Join(parts, ", ")
}
