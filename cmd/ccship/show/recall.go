package show

import (
	"fmt"
	"strings"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/internal/amount"
)

// Timeline lists what happened in a session, one moment a line.
func (v View) Timeline(t library.Timeline) string {
	t = plain(t)
	var b strings.Builder
	day, wide, waits := "", 0, false
	for _, m := range t.Moments {
		wide, waits = max(wide, term.Width(took(&m))), waits || m.MayWait
	}
	for _, m := range t.Moments {
		at := ""
		if !m.At.IsZero() {
			local := m.At.In(v.Zone)
			if d := local.Format("2006-01-02"); d != day {
				day = d
				b.WriteString(d + "\n")
			}
			at = local.Format("15:04:05")
		}
		text := m.Text
		switch {
		case m.From != "" && m.Kind == "prompt":
			text = "(via " + m.From + ") " + text
		case m.From != "":
			text = m.From + ": " + text
		}
		if m.Tool != "" && m.Kind != "prompt" {
			text = strings.TrimSpace(m.Tool + ": " + text)
		}
		if m.Before > 0 {
			text += ", " + humanTokens(m.Before)
			if m.After > 0 {
				text += " → " + humanTokens(m.After)
			}
		}
		line := fmt.Sprintf("  %s  %s  %s  %s", term.Pad(at, 8), term.Pad(string(m.Kind), 10), term.Pad(took(&m), wide),
			term.Cut(term.Printable(text), mostShown))
		b.WriteString(strings.TrimRight(v.fit(line), " ") + "\n")
	}
	if len(t.Moments) == 0 {
		b.WriteString("nothing happened\n")
	}
	if waits {
		b.WriteString(v.fit("≤: it may have waited for you part of that time") + "\n")
	}
	if t.Read < t.Lines {
		fmt.Fprintf(&b, "the server is still reading: %s of %s\n", amount.Count(t.Read),
			amount.Counted(t.Lines, "line", "lines"))
	}
	return b.String()
}

// took says how long a moment took, and how much of it was waiting for the user.
func took(m *library.Moment) string {
	if m.Running {
		return "running"
	}
	var parts []string
	if m.Took > 0 {
		text := span(m.Took)
		if m.MayWait {
			text = "≤ " + text
		}
		parts = append(parts, text)
	}
	if m.Waited >= 1000 {
		parts = append(parts, "waited "+span(m.Waited))
	}
	return strings.Join(parts, ", ")
}

// span returns a number of milliseconds in words.
func span(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	if d < time.Hour {
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return amount.Duration(d)
}
