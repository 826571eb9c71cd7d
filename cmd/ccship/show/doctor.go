package show

import (
	"slices"
	"strings"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/doctor"
	"github.com/ccship/ccship/internal/amount"
)

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
