package show

import (
	"fmt"
	"strings"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
)

// Resend returns the answer to a resend for people.
func Resend(r control.ResendResult) string {
	r = plain(r)
	var b strings.Builder
	inStep := r.Transcripts - len(r.Resent)
	fmt.Fprintf(&b, "%s compared with the server, %d in step\n",
		amount.Counted(int64(r.Transcripts), "transcript", "transcripts"), inStep)
	if len(r.Resent) > 0 {
		b.WriteString("sent again: " + resentText(r) + "; `ccship sync --wait` waits for it\n")
	}
	for _, t := range r.Resent {
		fmt.Fprintf(&b, "  %s  %s from line %d, as generation %d\n", t.SessionID, amount.Counted(t.Lines, "line", "lines"),
			amount.LineNumber(t.From), t.Generation)
	}
	for _, t := range r.Skipped {
		fmt.Fprintf(&b, "  not sent: %s  %s\n", t.SessionID, term.OneLine(t.Why))
	}
	return b.String()
}

func resentText(r control.ResendResult) string {
	return amount.Counted(r.Lines, "line", "lines") + " of " +
		amount.Counted(int64(len(r.Resent)), "transcript", "transcripts")
}
