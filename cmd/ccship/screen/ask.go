package screen

import (
	"context"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

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
