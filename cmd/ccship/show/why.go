package show

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/transcript/provenance"
)

// maxTitle is how much of a session's title is shown next to a line, in columns.
const maxTitle = 60

// maxPrompts is how many prompts of a session are listed for a commit.
const maxPrompts = 5

// WhyCommits tells which sessions wrote commits, and of several what they wrote together.
func (v View) WhyCommits(answers []provenance.Answer) string {
	if len(answers) == 0 {
		return "no commits\n"
	}
	var b strings.Builder
	for i := range answers {
		v.why(&b, short(answers[i].Commit), &answers[i], maxPrompts)
	}
	if len(answers) > 1 {
		all := provenance.Merge(answers)
		v.why(&b, amount.Counted(int64(len(answers)), "commit", "commits"), &all, 0)
	}
	return b.String()
}

func short(commit string) string {
	if commit == "" {
		return "not committed"
	}
	return commit[:min(len(commit), 9)]
}

// why writes what is known of a commit: how many lines are whose, and up to prompts prompts of each session.
func (v View) why(b *strings.Builder, name string, a *provenance.Answer, prompts int) {
	proven := 0
	for _, s := range a.Sessions {
		proven += s.Lines
	}
	text := fmt.Sprintf("%s  %d of %s from %s", term.Printable(name), proven, amount.Counted(int64(a.Added),
		"added line", "added lines"),
		amount.Counted(int64(len(a.Sessions)), "session", "sessions"))
	if n := a.Added - proven; n > 0 {
		text += fmt.Sprintf("; not proven: %s", reasons(a.NotProven))
	}
	b.WriteString(v.fit(text) + "\n")
	for _, s := range a.Sessions {
		b.WriteString(v.fit("  "+author(s)+", "+amount.Counted(int64(s.Lines), "line", "lines")) + "\n")
		for i, p := range s.Prompts {
			if i == prompts {
				break
			}
			b.WriteString(v.fit(fmt.Sprintf("    %s  %s", term.Pad(fmt.Sprint(p.Lines), 4), v.prompt(s, p))) + "\n")
		}
	}
}

func author(s provenance.Author) string {
	text := term.Printable(s.SessionID)
	if s.Title != "" {
		text = "“" + term.Cut(term.Printable(s.Title), maxTitle) + "” (" + text + ")"
	}
	if s.Machine != "" {
		text += " on " + term.Printable(s.Machine)
	}
	if s.User != "" {
		text += ", " + term.Printable(s.User)
	}
	if s.ByPath {
		text += ", by path and text alone"
	}
	return text
}

func (v View) prompt(s provenance.Author, p provenance.Prompt) string {
	if p.Line < 0 {
		return "(no prompt is known)"
	}
	text := term.Cut(term.Printable(p.Text), mostShown)
	if text == "" {
		text = "(a prompt without text)"
	}
	return fmt.Sprintf("%s  [%s line %d]", text, term.Printable(s.SessionID[:min(len(s.SessionID), shortID)]),
		amount.LineNumber(p.Line))
}

// reasons says why lines are not proven.
func reasons(counts map[string]int) string {
	words := map[string]string{
		provenance.ByHand: "by hand or by a command", provenance.Generated: "generated",
		provenance.Restored: "moved or brought back",
		provenance.Masked:   "with a secret", provenance.Little: "too little of a session", provenance.OtherAuthor: "a bot's",
		provenance.NoTranscript: "no transcript of that time", provenance.NotCompared: "blank, or with a secret",
	}
	var out []string
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		word := words[reason]
		if word == "" {
			word = term.Printable(reason)
		}
		out = append(out, fmt.Sprintf("%d %s", counts[reason], word))
	}
	return strings.Join(out, ", ")
}

// WhyLines tells of each line which prompt it comes from. Lines in a row with one answer share it.
func (v View) WhyLines(lines []library.WhyLine) string {
	var b strings.Builder
	for i := 0; i < len(lines); {
		n := i + 1
		for n < len(lines) && origin(&lines[n]) == origin(&lines[i]) {
			n++
		}
		for _, l := range lines[i:n] {
			b.WriteString(v.fit(fmt.Sprintf("%6d  %s", l.Line, term.Printable(strings.ReplaceAll(l.Text, "\t", "    ")))) + "\n")
		}
		for _, text := range v.origin(&lines[i]) {
			b.WriteString(v.fit("        "+text) + "\n")
		}
		i = n
	}
	return b.String()
}

// WhyFile tells which prompts wrote a file as it is.
func (v View) WhyFile(name string, lines []library.WhyLine) string {
	all := make([]provenance.Answer, 0, len(lines))
	for _, l := range lines {
		if strings.TrimSpace(l.Text) != "" {
			all = append(all, provenance.Answer{Added: 1, Sessions: l.Sessions, NotProven: l.NotProven})
		}
	}
	var b strings.Builder
	sum := provenance.Merge(all)
	v.why(&b, name, &sum, len(lines))
	return b.String()
}

// origin is equal for lines with one answer.
func origin(l *library.WhyLine) string {
	text := l.Commit + fmt.Sprint(l.NotProven)
	for _, s := range l.Sessions {
		text += fmt.Sprint(s.SessionID, s.Prompts[0].Line, l.Formatted)
	}
	return text
}

func (v View) origin(l *library.WhyLine) []string {
	if len(l.Sessions) == 0 {
		text := "not proven: " + strings.TrimLeft(reasons(l.NotProven), "0123456789 ")
		if l.Commit != "" {
			text += "; committed as " + short(l.Commit)
		}
		return []string{text}
	}
	s := l.Sessions[0]
	p := s.Prompts[0]
	text := "written by Claude in " + author(s)
	if !p.At.IsZero() {
		text += ", " + p.At.In(v.Zone).Format("2 January 2006 15:04")
	}
	if l.Commit == "" {
		text += ", not committed yet"
	} else {
		text += ", committed as " + short(l.Commit)
	}
	out := []string{text, "prompt  " + v.prompt(s, p)}
	var since []string
	if l.Steps > 0 {
		since = append(since, amount.Counted(int64(l.Steps), "later commit", "later commits")+" only moved or formatted it")
	}
	if l.Formatted {
		since = append(since, "its form differs, its words do not")
	}
	if len(since) > 0 {
		out = append(out, "since   "+strings.Join(since, "; "))
	}
	return out
}

// WhyNote returns what is known of a commit as a note on it: where its prompts are, and no word of them. "" when no
// session is proven to have written it.
func WhyNote(a *provenance.Answer) string {
	var b strings.Builder
	for _, s := range a.Sessions {
		for _, p := range s.Prompts {
			at := term.Printable(p.URL)
			if at == "" { // without a server: what ccship show takes
				at = fmt.Sprintf("ccship show %s:%d", term.Printable(s.SessionID), max(p.Line, 0))
			}
			fmt.Fprintf(&b, "%s (%d of %d lines)\n", at, p.Lines, a.Added)
		}
	}
	return b.String()
}

// usageColumns are the columns of sums.
var usageColumns = []struct {
	head string
	of   func(library.Row) int64
}{
	{"responses", func(r library.Row) int64 { return r.Answers }},
	{"input", func(r library.Row) int64 { return r.Input }},
	{"output", func(r library.Row) int64 { return r.Output }},
	{"write 5m", func(r library.Row) int64 { return r.CacheWrite5m }},
	{"write 1h", func(r library.Row) int64 { return r.CacheWrite1h }},
	{"cache read", func(r library.Row) int64 { return r.CacheRead }},
	{"total", func(r library.Row) int64 { return r.Total }},
}

// Usage is a table of sums, with the total below.
func (v View) Usage(r library.Report) string {
	r = plain(r)
	if r.Total.Answers == 0 {
		return "no responses yet\n"
	}
	head := append([]string{}, r.By...)
	for _, c := range usageColumns {
		head = append(head, c.head)
	}
	table := [][]string{append(head, "cost")}
	for _, row := range r.Rows {
		table = append(table, usageCells(r.By, row))
	}
	if at := slices.Index(r.By, library.Session); at >= 0 {
		for i, id := range shortened(r.Rows, func(row *library.Row) string { return row.Session }) {
			table[i+1][at] = id
		}
	}
	total := usageCells(r.By, r.Total)
	total[0] = "total"
	all := append(table, total)
	first := len(r.By) // of the figures: kinds of cache use give way first, then what they are the sum of
	signs, shown := squeezed(strings.Repeat("<", first)+strings.Repeat(">", len(head)-first+1), all, v.Columns,
		[]int{first + 4, first + 3, first + 5, first + 1, first + 2, first})
	var b strings.Builder
	for n, line := range aligned(signs, shown) {
		text := v.fit(line)
		if n == 0 || n == len(all)-1 {
			text = v.paint(bold, text)
		}
		b.WriteString(text + "\n")
	}
	source := usageSource(r)
	if len(signs) < len(all[0]) {
		source += "\na wider terminal shows more columns"
	}
	b.WriteString(term.Hang(source, v.Columns, 2) + "\n")
	return b.String()
}

// usageSource says what the sums are of.
func usageSource(r library.Report) string {
	source := "your sessions on the server"
	if r.Source == library.FromDisk {
		source = amount.Counted(int64(r.Files), "transcript", "transcripts") + " on this disk"
	}
	return source + "; list prices of " + r.Prices
}

// usageCells are a row's cells.
func usageCells(by []string, row library.Row) []string {
	var cells []string
	for _, name := range by {
		cell := map[string]string{
			library.Day: row.Day, library.Project: row.Project, library.Model: row.Model,
			library.Machine: cmp.Or(row.Host, row.Machine), library.Session: row.Session,
		}[name]
		cells = append(cells, term.Cut(term.Printable(cell), 40))
	}
	for _, c := range usageColumns {
		cells = append(cells, amount.Count(c.of(row)))
	}
	return append(cells, atLeast(row.Cost, row.Unpriced))
}

// UsageFault says in one line what could not be read.
func UsageFault(f library.Fault) string {
	where := f.Path
	if f.Line > 0 {
		where += ":" + strconv.FormatInt(f.Line, 10)
	}
	more := ""
	if f.Lines > 1 {
		more = fmt.Sprintf(" (and %s)", amount.Counted(f.Lines-1, "more line", "more lines"))
	}
	return term.Printable(where + ": " + f.Why + more)
}
