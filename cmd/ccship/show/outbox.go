package show

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
)

// Outbox lists what waits, by server.
func (v View) Outbox(l control.OutboxList) string {
	l = plain(l)
	var b strings.Builder
	if len(l.Rows) == 0 {
		b.WriteString("the outbox is empty\n")
	}
	server := ""
	for _, r := range l.Rows {
		if r.Server != server {
			server = r.Server
			fmt.Fprintf(&b, "for %s\n", server)
		}
		fmt.Fprintf(&b, "  %s  %s, %s, for %s\n", term.Pad(cmp.Or(r.Session, r.Path), 36),
			rowText(r), amount.Size(r.Bytes), amount.Duration(v.Now.Sub(r.OldestAt)))
	}
	b.WriteString(more(l.Next))
	if l.Pause != nil {
		b.WriteString("paused " + PauseEnd(v.Now, l.Pause) + "\n")
	}
	if l.Outbox.Dead > 0 {
		b.WriteString(amount.Counted(l.Outbox.Dead, "dead letter", "dead letters") + ": `ccship outbox list --dead`\n")
	}
	return b.String()
}

// rowText says what waits: lines, files next to the transcript, or only what was derived of lines.
func rowText(r control.OutboxRow) string {
	switch {
	case r.Kind == "blobs":
		return amount.Counted(r.Batches, "file", "files")
	case r.Entries == 0:
		return amount.Counted(r.Batches, "row", "rows") + " without lines"
	}
	return amount.Counted(r.Entries, "entry", "entries")
}

// DeadLetters lists what servers refused for good.
func (v View) DeadLetters(d control.DeadLetters) string {
	d = plain(d)
	if len(d.Letters) == 0 {
		return "there are no dead letters\n"
	}
	var b strings.Builder
	for _, l := range d.Letters {
		what := letterText(l)
		if l.Generation > 0 {
			what += fmt.Sprintf(" of generation %d", l.Generation)
		}
		if l.Entries > 1 {
			what += fmt.Sprintf(" and %d more", l.Entries-1)
		}
		fmt.Fprintf(&b, "%s  %s, %s, %s\n", term.Pad(l.ID, 12), cmp.Or(l.Session, l.Path), what, amount.Size(l.Bytes))
		fmt.Fprintf(&b, "%s  %s by %s %s\n", term.Pad("", 12), Reason(l), l.Server, amount.Ago(v.Now, l.At))
		if l.Answer != "" {
			fmt.Fprintf(&b, "%s  %s\n", term.Pad("", 12), term.Cut(term.Printable(l.Answer), 100))
		}
	}
	return b.String()
}

// letterText says what a letter holds.
func letterText(l control.DeadLetter) string {
	switch l.Kind {
	case "blob":
		return "file " + term.Printable(l.Name)
	case "checkpoints":
		return "a checkpoint"
	case "documents":
		return "a document's change"
	}
	return fmt.Sprintf("line %d", amount.LineNumber(l.Line))
}

// Reason returns why a letter is dead.
func Reason(l control.DeadLetter) string {
	switch l.Reason {
	case "too_large":
		return "too large"
	case "damaged":
		return "damaged here, not taken"
	}
	if l.Status != 0 {
		return fmt.Sprintf("refused with %d", l.Status)
	}
	return "refused"
}
