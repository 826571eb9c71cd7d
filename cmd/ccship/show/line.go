package show

import (
	"fmt"
	"strings"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
)

// LineWidth is the most columns of `status --line`.
const LineWidth = 80

// lineWatching returns what the line says when nothing waits.
func lineWatching(s control.Status) (symbol, words string) {
	switch {
	case advised(s, "state_gone"):
		return "!", "the state folder is gone"
	case unlisted(s):
		return "!", "some folders can't be listed"
	case advised(s, "unreadable"):
		return "!", "some files can't be read"
	}
	return "●", "up to date"
}

// StatusLine returns a status in a few words, behind its symbol where there are symbols.
func (v View) StatusLine(s control.Status) string {
	s = plain(s)
	symbol, words := lineWatching(s)
	switch s.State {
	case "importing":
		symbol, words = "◐", "importing"
		if f := s.Files; f != nil && f.Bytes > 0 {
			words += fmt.Sprintf(" %d %%", 100*f.ReadBytes/f.Bytes)
		}
	case "reading", "sending":
		symbol, words = "↑", "sending"
	case "retrying":
		symbol, words = "!", "retrying"
	case "refused":
		symbol, words = "✗", "server refuses"
		for _, srv := range s.Servers {
			if srv.State == "refused" {
				words = "server " + trouble(srv, "refuses")
				break
			}
		}
	case "paused":
		symbol, words = "‖", "paused"
		if s.Pause != nil && s.Pause.Until != nil {
			words += " " + PauseEnd(v.Now, s.Pause)
		}
	case "full":
		symbol, words = "✗", "outbox full"
	case "no_server":
		symbol, words = "○", "no server set"
	}
	parts := []string{words}
	if contact, trouble := v.lineContact(s); contact != "" {
		parts = append(parts, contact)
		if trouble {
			symbol = "!"
		}
	}
	if s.Outbox != nil && s.Outbox.Entries > 0 {
		parts = append(parts, amount.Count(s.Outbox.Entries)+" waiting")
	}
	if s.Outbox != nil && s.Outbox.Dead > 0 {
		parts = append(parts, amount.Count(s.Outbox.Dead)+" refused")
	}
	line := "ccship: " + strings.Join(parts, ", ")
	if v.Symbols {
		return symbol + " " + line
	}
	return line
}

// StatusSummary returns a status in one line.
func StatusSummary(s control.Status) string {
	s = plain(s)
	parts := []string{s.State}
	if s.Files != nil {
		parts = append(parts, amount.Counted(int64(s.Files.Tracked), "transcript", "transcripts"))
		if s.State == "importing" {
			parts = append(parts, amount.Size(s.Files.ReadBytes)+" of "+amount.Size(s.Files.Bytes)+" read")
		}
	}
	if s.Outbox != nil {
		parts = append(parts, amount.Count(s.Outbox.Entries)+" waiting")
	}
	if s.Sent != nil {
		parts = append(parts, amount.Count(s.Sent.Entries)+" sent")
	}
	for _, n := range s.Advice {
		parts = append(parts, term.OneLine(n.Text))
	}
	return strings.Join(parts, ", ")
}

// PauseEnd says how long a pause goes on.
func PauseEnd(now time.Time, p *control.Pause) string {
	if p == nil || p.Until == nil {
		return "until `ccship unpause`"
	}
	return "for " + amount.Duration(p.Until.Sub(now).Round(time.Second))
}
