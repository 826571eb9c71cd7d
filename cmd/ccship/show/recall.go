package show

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/daemon/remote"
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
		line := fmt.Sprintf("  %s  %s  %s  %s", term.Pad(at, 8), term.Pad(m.Kind, 10), term.Pad(took(&m), wide),
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

// span is a number of milliseconds in words.
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

// Blame lists turns that read or changed a file.
func (v View) Blame(turns []remote.Touch, more bool) string {
	turns = plain(turns)
	if len(turns) == 0 {
		return "nothing found\n"
	}
	full := make([]string, len(turns))
	for i, t := range turns {
		full[i] = t.Session.SessionID
	}
	ids := shortened(full)
	var b strings.Builder
	for i, t := range turns {
		var did []string
		if t.Edits > 0 {
			did = append(did, amount.Counted(int64(t.Edits), "edit", "edits"))
		}
		if t.Reads > 0 {
			did = append(did, amount.Counted(int64(t.Reads), "read", "reads"))
		}
		prompt := "(no prompt is known)"
		if t.Prompt != nil {
			prompt = t.Prompt.Text
		}
		b.WriteString(v.fit(fmt.Sprintf("%s  %s  %s", term.Pad(v.at(t.Time), 16), term.Pad(strings.Join(did, ", "), 18),
			term.Printable(t.Path))) + "\n")
		b.WriteString(v.fit("  "+term.Cut(term.Printable(prompt), mostShown)) + "\n")
		fmt.Fprintf(&b, "  session %s, line %d\n", ids[i], amount.LineNumber(t.Line))
	}
	if more {
		b.WriteString("there are more: --limit, or narrow it with --project, --session or --since\n")
	}
	return b.String()
}

func (v View) at(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.In(v.Zone).Format("2006-01-02 15:04")
}

// Fix lists errors, and what was done about each.
func (v View) Fix(episodes []remote.Episode) string {
	episodes = plain(episodes)
	if len(episodes) == 0 {
		return "this error is in no conversation on the server\n"
	}
	outcomes := map[string]string{
		"fixed": "fixed: the same call succeeded", "likely_fixed": "probably fixed: a similar command succeeded",
		"gone": "not seen again", "open": "not fixed in this session",
	}
	full := make([]string, len(episodes))
	for i, e := range episodes {
		full[i] = e.Session.SessionID
	}
	ids := shortened(full)
	var b strings.Builder
	for i, e := range episodes {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(v.fit(fmt.Sprintf("%s  %s  %s", v.at(e.Time), term.Printable(e.Session.Project),
			term.Printable(cmp.Or(e.Title, "(no title)")))) + "\n")
		fmt.Fprintf(&b, "  session %s, line %d: %s\n", ids[i], amount.LineNumber(e.Line),
			cmp.Or(outcomes[e.Outcome], term.Printable(e.Outcome)))
		if e.Prompt != nil {
			b.WriteString(v.fit("  prompt   "+term.Cut(term.Printable(e.Prompt.Text), mostShown)) + "\n")
		}
		if e.Call != nil {
			b.WriteString(v.fit("  failed   "+term.Printable(e.Call.Text)) + "\n")
		}
		b.WriteString("  error    " + v.snippet(e.Snippet) + "\n")
		if e.Again > 0 {
			b.WriteString("  again    " + amount.Counted(int64(e.Again), "time", "times") + "\n")
		}
		for _, s := range e.Steps {
			failed := ""
			if s.Failed {
				failed = " (failed)"
			}
			b.WriteString(v.fit("  "+term.Pad(s.Kind, 8)+" "+term.Cut(term.Printable(s.Text), mostShown)+failed) + "\n")
		}
		if e.Cut {
			b.WriteString("  the session goes on; only its next 8 MB were read\n")
		}
	}
	return b.String()
}
