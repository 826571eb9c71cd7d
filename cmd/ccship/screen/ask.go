package screen

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/library"
)

// flight is a question that is under way.
type flight struct {
	number int
	end    context.CancelFunc
}

// asker numbers the questions, so that an answer that comes late never replaces that of a later question. Few are
// under way at once: over a slow line the list follows the typing, and a server is not asked for every letter.
type asker struct {
	last    int // number of the last question
	shown   int // number of the question whose answer is shown
	flying  []flight
	waiting bool   // the newest query is not asked for yet
	query   string // of the last question
}

// mostFlying is how many questions are under way at once; overdue, how long the older may hold up a newer one.
const (
	mostFlying = 2
	overdue    = 400 * time.Millisecond
)

// pageMsg answers a question.
type pageMsg struct {
	number int
	page   page
	err    error
}

// diskMsg has what is on disk, in case the server takes long to say what ran last.
type diskMsg struct{ page page }

// overdueMsg says that question number has been under way for long.
type overdueMsg struct{ number int }

// ask asks for what the box says now, or notes that it must be asked.
func (m *model) ask() tea.Cmd {
	query := m.query()
	switch {
	case m.source == nil:
		return nil
	case m.asks.last > 0 && m.asks.query == query:
		m.asks.waiting = false
		return nil
	case len(m.asks.flying) >= mostFlying:
		m.asks.waiting = true
		return nil
	}
	m.asks.query, m.asks.waiting = query, false
	m.asks.last++
	n := m.asks.last
	ctx, cancel := context.WithCancel(m.ctx)
	m.asks.flying = append(m.asks.flying, flight{n, cancel})
	return tea.Batch(func() tea.Msg {
		p, err := m.source.page(ctx, query)
		return pageMsg{n, p, err}
	}, tea.Tick(overdue, func(time.Time) tea.Msg { return overdueMsg{n} }))
}

// land removes a question that is answered, or not worth waiting for, and asks the next.
func (m *model) land(number int) tea.Cmd {
	if i := slices.IndexFunc(m.asks.flying, func(f flight) bool { return f.number == number }); i >= 0 {
		m.asks.flying[i].end()
		m.asks.flying = slices.Delete(m.asks.flying, i, i+1)
	}
	if m.asks.waiting {
		return m.ask()
	}
	return nil
}

// answered shows a page, unless a later question's is shown.
func (m *model) answered(a pageMsg) tea.Cmd {
	next := m.land(a.number)
	if a.err != nil || a.number < m.asks.shown {
		return next
	}
	m.asks.shown = a.number
	m.show(a.page)
	return tea.Batch(next, m.read())
}

// late gives up a question that holds up a newer one.
func (m *model) late(number int) tea.Cmd {
	if len(m.asks.flying) == 0 || m.asks.flying[0].number != number {
		return nil
	}
	if !m.asks.waiting { // it may still hold one up
		return tea.Tick(overdue, func(time.Time) tea.Msg { return overdueMsg{number} })
	}
	return m.land(number)
}

// readMsg has the conversation at a row.
type readMsg struct {
	key      string
	passages []library.Passage
	err      error
}

// read gets the conversation at the selected row, one at a time.
func (m *model) read() tea.Cmd {
	r := m.selected()
	if r == nil || m.reading != "" {
		return nil
	}
	key, spot := r.key(), r.spot
	if _, known := m.passages[key]; known {
		return nil
	}
	m.reading = key
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, patience)
		defer cancel()
		all, err := m.source.Library.Around(ctx, spot)
		return readMsg{key, all, err}
	}
}

// mostRead is how many conversations are kept.
const mostRead = 64

func (m *model) keep(r readMsg) tea.Cmd {
	m.reading = ""
	if len(m.passages) >= mostRead {
		clear(m.passages)
	}
	m.passages[r.key] = &conversation{passages: r.passages, err: r.err}
	return m.read()
}

// maxWritten is how many characters a line has at most: frames measure it, and no search is longer.
const maxWritten = 4096

// box is a line that is being written.
type box struct {
	text []rune
	at   int // the cursor
}

func (b *box) String() string { return string(b.text) }

// insert writes at the cursor what can stand in one line, and has a place there.
func (b *box) insert(text string) {
	var in []rune
	for _, r := range text {
		if len(b.text)+len(in) >= maxWritten {
			break
		}
		if r == '\n' || r == '\t' {
			r = ' '
		}
		if !term.Steers(r) {
			in = append(in, r)
		}
	}
	b.text = append(b.text[:b.at:b.at], append(in, b.text[b.at:]...)...)
	b.at += len(in)
}

// set replaces the line.
func (b *box) set(text string) {
	b.text, b.at = nil, 0
	b.insert(text)
}

// key edits the line, and reports whether the key is one for that.
func (b *box) key(k tea.KeyPressMsg) bool {
	switch k.Keystroke() {
	case "backspace", "ctrl+h":
		b.remove(max(0, b.at-1), b.at)
	case "delete", "ctrl+d":
		b.remove(b.at, min(len(b.text), b.at+1))
	case "ctrl+w", "alt+backspace":
		b.remove(b.wordStart(), b.at)
	case "ctrl+u":
		b.remove(0, b.at)
	case "ctrl+k":
		b.remove(b.at, len(b.text))
	case "left", "ctrl+b":
		b.at = max(0, b.at-1)
	case "right", "ctrl+f":
		b.at = min(len(b.text), b.at+1)
	case "home", "ctrl+a":
		b.at = 0
	case "end":
		b.at = len(b.text)
	default:
		if k.Text == "" || k.Mod&(tea.ModCtrl|tea.ModAlt) != 0 {
			return false
		}
		b.insert(k.Text)
	}
	return true
}

func (b *box) remove(from, to int) {
	b.text = append(b.text[:from:from], b.text[to:]...)
	b.at = from
}

// wordStart returns where the word before the cursor begins.
func (b *box) wordStart() int {
	at := b.at
	for at > 0 && unicode.IsSpace(b.text[at-1]) {
		at--
	}
	for at > 0 && !unicode.IsSpace(b.text[at-1]) {
		at--
	}
	return at
}

// show returns what of the line fits into so many columns, and the column of the cursor.
func (b *box) show(columns int) (text string, cursor int) {
	// The longest end before the cursor that fits: halving, for a step at a time measures a long line thousands of times.
	from := sort.Search(b.at, func(i int) bool { return term.Width(string(b.text[i:b.at])) < columns })
	before := string(b.text[from:b.at])
	return cut(before+string(b.text[b.at:]), columns), term.Width(before)
}

// cut returns the beginning of a text that fits, without an ellipsis.
func cut(text string, columns int) string {
	if term.Width(text) <= columns {
		return text
	}
	return strings.TrimSuffix(term.Cut(text+" ", columns+1), "…")
}

// names are the projects and machines that were in a list, those of the latest first.
type names struct{ projects, machines []string }

// see remembers the names in a list.
func (n *names) see(rows []row) {
	var seen names
	for _, r := range rows {
		seen.projects = append(seen.projects, r.Project)
		seen.machines = append(seen.machines, cmp.Or(r.Host, r.Machine))
	}
	n.projects = unique(append(seen.projects, n.projects...))
	n.machines = unique(append(seen.machines, n.machines...))
}

// unique returns the names in their order, each once.
func unique(all []string) []string {
	var out []string
	for _, name := range all {
		if name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// values returns those that a filter may have, as far as they are known.
func (n *names) values(filter string) []string {
	switch filter {
	case "project":
		return n.projects
	case "machine":
		return n.machines
	case "kind":
		return []string{"prompt", "answer", "tool", "result", "error", "edit", "read", "command", "thinking", "message",
			"title"}
	case "is":
		return []string{"error", "starred", "lost", "running"}
	}
	return nil
}

// complete completes the value of the filter before the cursor, and reports whether it did.
func (m *model) complete() bool {
	before := string(m.box.text[:m.box.at])
	start := strings.LastIndexFunc(before, unicode.IsSpace) + 1
	filter, begun, found := strings.Cut(strings.TrimPrefix(before[start:], "-"), ":")
	if !found {
		return false
	}
	values := m.known.values(strings.ToLower(filter))
	if slices.Contains(values, begun) {
		return false
	}
	for _, v := range values {
		if strings.HasPrefix(strings.ToLower(v), strings.ToLower(begun)) {
			m.box.remove(m.box.at-len([]rune(begun)), m.box.at)
			m.box.insert(named(v))
			return true
		}
	}
	return false
}
