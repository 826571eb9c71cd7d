// Package show writes the answers of the daemon, the doctor and the library as text for people: status, lists, reports,
// and what to do about a problem. It asks nobody and prints nothing; the verbs of ccship do.
package show

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/doctor"
	"github.com/ccship/ccship/internal/amount"
)

// View writes answers as they look at one moment on one output.
type View struct {
	Now     time.Time
	Zone    *time.Location
	Columns int // 0: no line is cut or broken
	Colours bool
	Symbols bool                           // beyond ASCII, in the doctor's report
	Bar     func(done, total int64) string // draws progress; nil writes it in words
}

// On is the view that suits w, now.
func On(w io.Writer) View {
	columns, _ := term.Columns(w)
	return View{Now: time.Now(), Zone: time.Local, Columns: columns, Colours: term.Colours(w),
		Symbols: term.UTF8(os.LookupEnv)}
}

// The colours, by meaning.
const (
	good   = "32"
	busy   = "36"
	uneasy = "33"
	bad    = "31"
	faint  = "2"
	bold   = "1"
)

func (v View) paint(code, text string) string {
	if !v.Colours || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// columnsAfter returns how many columns are left behind a name; 0: any number.
func (v View) columnsAfter(name int) int {
	if v.Columns == 0 {
		return 0
	}
	return max(1, v.Columns-name)
}

func (v View) fit(line string) string {
	if v.Columns > 0 {
		return term.Cut(line, v.Columns)
	}
	return line
}

// when is a time near now in words, else a day.
func (v View) when(t time.Time) string {
	if v.Now.Sub(t) < 24*time.Hour {
		return amount.Ago(v.Now, t)
	}
	return t.In(v.Zone).Format(time.DateOnly)
}

func (v View) minute(t time.Time) string {
	if t.IsZero() {
		return unknown
	}
	return t.In(v.Zone).Format("2006-01-02 15:04")
}

// humanTokens is a number of tokens in three digits.
func humanTokens(n int64) string {
	if n < 1000 {
		return amount.Counted(n, "token", "tokens")
	}
	return shortTokens(n) + " tokens"
}

// shortTokens is humanTokens without the word.
func shortTokens(n int64) string {
	switch {
	case n >= 999_500:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 1000:
		return fmt.Sprintf("%.0fk", float64(n)/1e3)
	}
	return amount.Count(n)
}

// money is what tokens cost; nil: no price is known.
func money(cost *float64) string {
	switch {
	case cost == nil:
		return unknown
	case *cost > 0 && *cost < 0.01:
		return "<$0.01"
	case math.Abs(*cost) >= 1e12: // no sum of tokens, but a server may say so
		return fmt.Sprintf("$%.1e", *cost)
	}
	return fmt.Sprintf("$%.2f", *cost)
}

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

// nameWidth is the column behind symbol and name.
const nameWidth = 15

// mark returns how a level looks.
func (v View) mark(l doctor.Level) (symbol, colour string) {
	marks := map[doctor.Level][3]string{
		doctor.Fail: {"✗", "x", bad}, doctor.Warn: {"!", "!", uneasy},
		doctor.Note: {"·", "-", busy}, doctor.OK: {"✓", "+", good},
	}
	m := marks[l]
	if v.Symbols {
		return m[0], m[2]
	}
	return m[1], m[2]
}

// Doctor returns the whole screen of a doctor's report, with a newline at the end. While something is wrong, checks
// that found nothing are only named.
func (v View) Doctor(r doctor.Report, fixing bool) string {
	r = plain(r)
	var b strings.Builder
	b.WriteString(v.verdict(r) + "\n")
	v.fixes(&b, r.Fixes, fixing)
	b.WriteString("\n")
	wrong := r.Failed+r.Warned > 0
	var well []string
	for _, f := range r.Findings {
		if f.Level == doctor.OK && wrong {
			if !slices.Contains(well, f.ID) {
				well = append(well, f.ID)
			}
			continue
		}
		v.finding(&b, f)
	}
	if len(well) > 0 {
		v.paragraph(&b, doctor.OK, "ok", strings.ReplaceAll(strings.Join(well, ", "), "_", " "))
	}
	if fixable(r) && !fixing {
		b.WriteString("\n`ccship doctor --fix` fixes what is marked with *.\n")
	}
	return b.String()
}

// fixable says whether --fix would do anything.
func fixable(r doctor.Report) bool {
	return slices.ContainsFunc(r.Findings, func(f doctor.Finding) bool { return f.Safe })
}

// verdict returns the one line that says most.
func (v View) verdict(r doctor.Report) string {
	level, words := doctor.OK, "no problems found"
	switch {
	case r.Failed > 0:
		level, words = doctor.Fail, amount.Counted(int64(r.Failed), "check failed", "checks failed")
		if r.Warned > 0 {
			words += ", " + amount.Counted(int64(r.Warned), "warning", "warnings")
		}
	case r.Warned > 0:
		level, words = doctor.Warn, "it works; "+amount.Counted(int64(r.Warned), "warning", "warnings")
	}
	symbol, colour := v.mark(level)
	return v.paint(colour, symbol) + " " + v.paint(bold, "ccship doctor") + ": " + words
}

// finding writes a finding and its fix.
func (v View) finding(b *strings.Builder, f doctor.Finding) {
	v.paragraph(b, f.Level, strings.ReplaceAll(f.ID, "_", " "), term.OneLine(f.Text))
	if f.Level == doctor.OK {
		return
	}
	if f.Detail != "" {
		v.lines(b, term.OneLine(f.Detail), faint)
	}
	if f.Fix != "" {
		arrow, star := "→ ", ""
		if !v.Symbols {
			arrow = "> "
		}
		if f.Safe {
			star = " *"
		}
		v.lines(b, arrow+term.OneLine(f.Fix)+star, "")
	}
}

// paragraph is a text behind its symbol and name.
func (v View) paragraph(b *strings.Builder, l doctor.Level, name, text string) {
	symbol, colour := v.mark(l)
	for i, line := range v.wrap(text) {
		if i > 0 {
			b.WriteString(strings.Repeat(" ", nameWidth) + line + "\n")
			continue
		}
		b.WriteString(v.paint(colour, symbol) + " " + v.paint(faint, term.Pad(name, nameWidth-3)) + " " + line + "\n")
	}
}

// lines are a text below a finding's.
func (v View) lines(b *strings.Builder, text, colour string) {
	for _, line := range v.wrap(text) {
		if colour != "" {
			line = v.paint(colour, line)
		}
		b.WriteString(strings.Repeat(" ", nameWidth) + line + "\n")
	}
}

// fixes are what was done.
func (v View) fixes(b *strings.Builder, fixes []doctor.Fix, fixing bool) {
	if fixing && len(fixes) == 0 {
		b.WriteString("\nnothing that is safe to fix\n")
		return
	}
	if len(fixes) > 0 {
		b.WriteString("\n")
	}
	for _, f := range fixes {
		if f.Done {
			v.paragraph(b, doctor.OK, "fixed", f.Command)
			continue
		}
		v.paragraph(b, doctor.Fail, "not fixed", f.Command+": "+term.OneLine(f.Error))
		if f.Hint != "" {
			v.lines(b, "hint: "+term.OneLine(f.Hint), "")
		}
	}
}

// wrap breaks a text so that it fits behind the names.
func (v View) wrap(text string) []string {
	if v.Columns == 0 {
		return []string{text}
	}
	return term.Wrap(text, max(1, v.Columns-nameWidth-1))
}

// atLeast is what tokens cost of which some have no price.
func atLeast(cost *float64, unpriced int64) string {
	text := money(cost)
	if cost != nil && unpriced > 0 {
		text += "+"
	}
	return text
}
