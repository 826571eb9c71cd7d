package show

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
)

// statusName is how many columns the names of a status take.
const statusName = 11

// muchWaiting is how many bytes wait before sending is shown as progress: less is gone before anyone has looked.
const muchWaiting = 1 << 20

// Status returns the whole screen, with a newline at the end.
func (v View) Status(s control.Status) string {
	s = plain(s)
	var b strings.Builder
	b.WriteString(term.Hang(v.headline(s), v.Columns, 2) + "\n\n")
	row := func(name, text string) {
		for _, line := range term.Wrap(text, v.columnsAfter(statusName)) {
			b.WriteString("  " + v.paint(faint, term.Pad(name, statusName-2)) + line + "\n")
			name = ""
		}
	}
	if len(s.Servers) == 0 {
		row("server", "none set: nothing is sent")
	}
	for _, server := range s.Servers {
		for i, line := range v.Server(server) {
			if i == 0 {
				row("server", line)
			} else {
				row("", line)
			}
		}
	}
	if s.Files != nil {
		row("files", v.files(*s.Files))
	}
	importing := s.State == "importing" || s.State == "sending" && s.Outbox != nil && s.Outbox.Bytes > muchWaiting
	if s.Files != nil && s.Outbox != nil && importing {
		row("import", v.progress(max(0, s.Files.ReadBytes-s.Outbox.Bytes), s.Files.Bytes))
	}
	if s.Outbox != nil {
		row("outbox", v.outboxRow(*s.Outbox))
	}
	if s.Sent != nil {
		row("sent", v.sent(*s.Sent))
	}
	if s.Watch != nil {
		row("watching", v.watch(*s.Watch))
	}
	if p := s.Process; p != nil {
		row("process", fmt.Sprintf("%s memory, %.1f s CPU, state file %s",
			amount.Size(p.RSS), p.CPUSeconds, amount.Size(p.StateFile)))
	}
	b.WriteString(v.notices(s))
	return b.String()
}

// unlisted says that there may be transcripts that nobody can see.
func unlisted(s control.Status) bool { return s.Watch != nil && len(s.Watch.Unread) > 0 }

// advised says that the daemon gives advice of a kind.
func advised(s control.Status, kind string) bool {
	return slices.ContainsFunc(s.Advice, func(a control.Advice) bool { return a.Kind == kind })
}

// watching returns what is said when nothing waits.
func watching(s control.Status) (symbol, colour, words string) {
	switch {
	case advised(s, "state_gone"):
		return "!", uneasy, "what was read is on the server, but the state folder is gone"
	case unlisted(s):
		return "!", uneasy, "what can be read is on the server; some folders can't be listed"
	case advised(s, "unreadable"):
		return "!", uneasy, "what can be read is on the server; some files can't be"
	case s.Watch != nil && len(s.Watch.Stray)+len(s.Watch.NotFollowed) > 0:
		n := int64(len(s.Watch.Stray) + len(s.Watch.NotFollowed))
		return "!", uneasy, "what is read is on the server; " +
			amount.Counted(n, "file or folder is", "files or folders are") + " not"
	case s.Files != nil && s.Files.Tracked == 0:
		return "●", good, "watching; there are no conversations yet"
	case s.Files != nil && s.Files.Unfinished > 0:
		return "●", good, "every finished line is on the server; watching for new lines"
	case s.Watch != nil && len(s.Watch.Elsewhere) > 0:
		return "●", good, "everything in the watched folders is on the server; watching for new lines"
	}
	return "●", good, "everything is on the server; watching for new lines"
}

// headline returns the one line that says most.
func (v View) headline(s control.Status) string {
	symbol, colour, words := "●", good, s.State
	switch s.State {
	case "watching":
		symbol, colour, words = watching(s)
	case "importing":
		symbol, colour, words = "◐", busy, "importing conversations"
	case "reading":
		symbol, colour, words = "◐", busy, "reading new lines"
	case "sending":
		symbol, colour, words = "↑", busy, "sending"
	case "retrying":
		symbol, colour, words = "!", uneasy, "cannot deliver right now; retrying, nothing is lost"
	case "refused":
		symbol, colour, words = "✗", bad, "the server refuses what it is sent; nothing is lost"
		if slices.ContainsFunc(s.Servers, func(s control.Server) bool { return s.Kind == control.CodeRefusedKey }) {
			words = "the server rejects the API key; nothing is lost"
		}
	case "paused":
		symbol, colour, words = "‖", uneasy, "paused "+PauseEnd(v.Now, s.Pause)+"; reading goes on"
	case "full":
		symbol, colour, words = "✗", bad, "outbox full: reading has stopped"
	case "no_server":
		symbol, colour, words = "○", uneasy, "no server is set: nothing is sent"
	}
	if trouble := v.contactTrouble(s); trouble != "" {
		switch s.State {
		case "watching":
			symbol, colour, words = "!", uneasy, "up to date, but "+trouble
		case "importing", "reading", "sending":
			symbol, colour, words = "!", uneasy, words+", but "+trouble
		}
	}
	line := v.paint(colour, symbol) + " " + v.paint(bold, "ccship") + ": " + words
	about := []string{}
	if !s.StartedAt.IsZero() {
		about = append(about, "up "+amount.Duration(v.Now.Sub(s.StartedAt)))
	}
	if s.PID != 0 {
		about = append(about, fmt.Sprintf("pid %d", s.PID))
	}
	if s.Version != "" {
		about = append(about, "version "+s.Version)
	}
	if len(about) > 0 {
		line += v.paint(faint, " ("+strings.Join(about, ", ")+")")
	}
	return line
}

// Server describes one destination, in one line while it is well.
func (v View) Server(s control.Server) []string {
	state := s.State
	switch s.State {
	case "ok":
		state = v.paint(good, v.reachable(s))
	case "unknown":
		state = "not tried yet"
	case "retrying":
		state = v.paint(uneasy, trouble(s, "not reachable"))
	case "refused":
		state = v.paint(bad, trouble(s, "refuses"))
	}
	parts := []string{s.URL, state}
	if s.RetryAt != nil && s.State != "ok" {
		parts = append(parts, "next try "+soon(v.Now, *s.RetryAt))
	}
	if s.Protocol != "" && s.Protocol != "unknown" {
		parts = append(parts, s.Protocol+" protocol")
	}
	if unwell(s) && s.Probe != nil {
		parts = append(parts, "asked "+amount.Ago(v.Now, s.Probe.At))
	}
	if s.LastOKAt != nil {
		parts = append(parts, "last acknowledged "+amount.Ago(v.Now, *s.LastOKAt))
	}
	lines := []string{strings.Join(parts, ", ")}
	if s.Detail != "" && s.State != "ok" {
		lines = append(lines, v.paint(faint, term.OneLine(s.Detail)))
	}
	if hint := serverHint(s); hint != "" {
		lines = append(lines, "hint: "+term.OneLine(hint))
	}
	return lines
}

// serverHint returns what to do about a server in trouble: what the daemon says, else the hint for its kind of trouble.
func serverHint(s control.Server) string {
	switch {
	case s.State == "ok":
		return ""
	case s.Hint != "" || s.State == "unknown":
		return s.Hint
	}
	if hint := TroubleHint(s.Kind); hint != "" {
		return hint
	}
	return "nothing is lost, ccship keeps retrying; see the daemon's log"
}

// trouble returns what is wrong with a server in a word or two.
func trouble(s control.Server, otherwise string) string {
	switch s.Kind {
	case "unreachable":
		return "not reachable"
	case "server_error":
		return "reports an internal error"
	case "busy":
		return "is busy"
	case "over_quota":
		return "stores no more for this user"
	case "refused_key":
		return "rejects the API key"
	case "refused":
		return "refuses requests"
	case "not_found":
		return "has no such path"
	case "redirect":
		return "redirects elsewhere"
	case "protocol":
		return "gives an unexpected answer"
	}
	return otherwise
}

func soon(now, t time.Time) string {
	if d := t.Sub(now); d >= time.Second {
		return "in " + amount.Duration(d)
	}
	return "now"
}

func (v View) files(f control.Files) string {
	text := fmt.Sprintf("%s of %s, %s, %s read",
		amount.Counted(int64(f.Tracked), "transcript", "transcripts"),
		amount.Counted(int64(f.Sessions), "session", "sessions"),
		amount.Size(f.Bytes), amount.Counted(f.Lines, "line", "lines"))
	for _, extra := range []struct {
		n    int64
		word string
	}{
		{int64(f.Unfinished), "with an unfinished last line"}, {int64(f.Excluded), "excluded"},
		{int64(f.Vanished), "no longer on disk"}, {f.Rewinds, "rewound"}, {f.Oversize, "oversize"},
		{f.Masked, "secrets masked"},
	} {
		if extra.n > 0 {
			text += ", " + amount.Count(extra.n) + " " + extra.word
		}
	}
	if f.Malformed > 0 {
		text += "; " + amount.Counted(f.Malformed, "line is", "lines are") + " not JSON, sent unchanged (`ccship doctor`)"
	}
	return text
}

func (v View) progress(done, total int64) string {
	if v.Bar != nil {
		return v.Bar(done, total)
	}
	percent := 100.0
	if total > 0 {
		percent = 100 * float64(done) / float64(total)
	}
	return fmt.Sprintf("%.0f %%: %s of %s", percent, amount.Size(done), amount.Size(total))
}

func (v View) outboxRow(o control.Outbox) string {
	text := "empty"
	if o.Batches > 0 || o.Entries > 0 {
		text = fmt.Sprintf("%s, %s waiting", amount.Counted(o.Entries, "entry", "entries"), amount.Size(o.Bytes))
		if o.OldestAt != nil {
			text += ", the oldest for " + amount.Duration(v.Now.Sub(*o.OldestAt))
		}
		if o.Cap > 0 {
			text += fmt.Sprintf(" (%.0f %% of %s)", 100*float64(o.Stored)/float64(o.Cap), amount.Size(o.Cap))
		}
	}
	if o.Dead > 0 {
		text += ", " + v.paint(bad, amount.Counted(o.Dead, "dead letter", "dead letters"))
	}
	if o.Withheld > 0 {
		text += ", " + amount.Count(o.Withheld) + " withheld from a plain server"
	}
	return text
}

func (v View) sent(s control.Sent) string {
	return fmt.Sprintf("%s, %s in %s since start",
		amount.Counted(s.Entries, "entry", "entries"), amount.Size(s.Bytes),
		amount.Counted(s.Requests, "request", "requests"))
}

func (v View) watch(w control.Watch) string {
	text := strings.Join(w.Roots, ", ")
	switch w.Mode {
	case "poll":
		text += " by polling"
	case "events":
		text += " by file events"
	}
	if w.Reason != "" {
		text += " (" + term.OneLine(w.Reason) + ")"
	}
	return text
}

func (v View) notices(s control.Status) string {
	var b strings.Builder
	for _, n := range s.Advice {
		b.WriteString("\n" + term.Hang(v.paint(uneasy, "!")+" "+term.OneLine(n.Text), v.Columns, 2) + "\n")
		if n.Hint != "" {
			b.WriteString(term.Hang("  hint: "+term.OneLine(n.Hint), v.Columns, 2) + "\n")
		}
	}
	if s.State == "no_server" {
		b.WriteString("\n" + term.Hang("  hint: "+Hint("no_server"), v.Columns, 2) + "\n")
	}
	return b.String()
}
