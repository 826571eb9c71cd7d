// Package screen is what `ccship` without arguments shows on a terminal: a box to search in, the sessions that were
// found, and the conversation at the place. A session is resumed, opened in the browser, copied or exported from it. It
// asks the library; while the server is away, it shows what is on disk. It does not know the verbs.
package screen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/ccship/ccship/daemon/library"
)

// conversation is what was read at a row.
type conversation struct {
	passages []library.Passage
	err      error

	columns int    // of lines
	words   string // that are marked in them
	lines   []string
	begin   int // the line where what was found begins; -1: nothing was found
}

// model is the state of the screen. Only Update changes it; commands read what they were given.
type model struct {
	ctx    context.Context //nolint:containedctx // of the program, which has no other way to its commands
	source *source         // nil: the desk is not there yet
	desk   func(context.Context) (Desk, error)
	failed error // why there is no desk

	colours       bool
	width, height int
	box           box
	inList        bool // keys are for the list
	help          bool
	said          string     // what the last action did
	wrong         bool       // said is a failure
	busy          bool       // an action is under way
	acting        sync.Mutex // held by the action
	notice        string     // what waits for the user

	asks     asker
	page     page
	known    names
	at       int // the selected row
	top      int // the first line of the list in sight
	passages map[string]*conversation
	reading  string // the key of the row that is being read
	scroll   int    // lines that the preview is moved down from where it begins

	chosen Chosen
}

func newModel(ctx context.Context, desk func(context.Context) (Desk, error), colours bool) *model {
	return &model{ctx: ctx, desk: desk, colours: colours, passages: map[string]*conversation{}, width: 80, height: 24}
}

// openedMsg has the desk.
type openedMsg struct {
	desk Desk
	err  error
}

// Init gets the desk.
func (m *model) Init() tea.Cmd {
	return func() tea.Msg {
		d, err := m.desk(m.ctx)
		return openedMsg{d, err}
	}
}

// query returns what to look for. One letter is nothing yet: it is nearly everywhere, and finding it is much work.
func (m *model) query() string {
	text := strings.TrimSpace(m.box.String())
	if len(text) < 2 {
		return ""
	}
	return text
}

func (r *row) key() string {
	return fmt.Sprint(r.user, "\n", r.Machine, "\n", r.Session, "\n", r.line, r.spot.Path == "")
}

// selected returns the row that actions are about; nil: there is none.
func (m *model) selected() *row {
	if m.at >= len(m.page.rows) {
		return nil
	}
	return &m.page.rows[m.at]
}

// noticeMsg is what waits for the user.
type noticeMsg string

// opened asks for what ran last, the server and the disk at once.
func (m *model) opened(o openedMsg) tea.Cmd {
	if m.failed = o.err; o.err != nil {
		return tea.Quit
	}
	m.source = &source{Desk: o.desk}
	all := []tea.Cmd{m.ask()}
	if m.source.Notice != nil {
		all = append(all, func() tea.Msg { return noticeMsg(m.source.Notice(m.ctx)) })
	}
	if m.source.Library.Server != nil {
		all = append(all, func() tea.Msg { return diskMsg{m.source.stored(m.ctx, "")} })
	}
	return tea.Batch(all...)
}

// Update takes what happened.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.PasteMsg:
		m.box.insert(msg.Content)
		return m, m.changed()
	case tea.MouseWheelMsg:
		return m, m.wheel(tea.Mouse(msg))
	case tea.MouseClickMsg:
		return m, m.click(tea.Mouse(msg))
	case pageMsg:
		return m, m.answered(msg)
	case diskMsg:
		if m.asks.shown == 0 {
			m.show(msg.page)
			return m, m.read()
		}
	case overdueMsg:
		return m, m.late(msg.number)
	case readMsg:
		return m, m.keep(msg)
	case openedMsg:
		return m, m.opened(msg)
	case noticeMsg:
		m.notice = string(msg)
	case doneMsg:
		return m, m.done(msg)
	}
	return m, nil
}

// changed asks again after the query changed.
func (m *model) changed() tea.Cmd {
	m.inList, m.said = false, ""
	return m.ask()
}

// show replaces the list. The same list with more in it keeps its selection.
func (m *model) show(p page) {
	m.known.see(p.rows)
	before := m.selected()
	same := m.page.query == p.query && before != nil
	key := ""
	if same {
		key = before.Session + before.Machine
	}
	m.page, m.at, m.top = p, firstChoice(p.rows), 0
	if same && m.inList {
		if i := slices.IndexFunc(p.rows, func(r row) bool { return r.Session+r.Machine == key }); i >= 0 {
			m.at = i
		}
	}
	if now := m.selected(); now == nil || !same || now.Session+now.Machine != key {
		m.scroll = 0
	}
}

// firstChoice returns the row that Enter takes when nothing was selected: the first that does not run already.
func firstChoice(rows []row) int {
	return max(0, slices.IndexFunc(rows, func(r row) bool { return r.state == "" }))
}

// move selects another row.
func (m *model) move(by int) tea.Cmd {
	to := min(max(0, m.at+by), max(0, len(m.page.rows)-1))
	if to == m.at {
		return nil
	}
	m.at, m.scroll, m.said = to, 0, ""
	return m.read()
}

// Desk is what a screen works with.
type Desk struct {
	Library *library.Library
	Folder  string // the current one
	Project string // its project
	// Browse shows an address of the viewer in a browser, and returns a line to show.
	Browse func(ctx context.Context, address string) (string, error)
	Notice func(ctx context.Context) string // what waits for the user, in one line; "": nothing
	Now    func() time.Time                 // nil: time.Now
}

// Chosen is the session that the person wants to go on with. It is on this disk. The zero value: none.
type Chosen struct {
	Session string
	Folder  string           // to resume it in
	Brought *library.Resumed // nil: it was here already
}

// Open shows the screen on a terminal until the person leaves it or chooses a session. The first frame does not wait
// for the desk.
func Open(ctx context.Context, desk func(context.Context) (Desk, error), colours bool, in io.Reader,
	out io.Writer) (Chosen, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := newModel(ctx, desk, colours)
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out),
		tea.WithEnvironment(os.Environ())).Run()
	interrupted := errors.Is(err, tea.ErrInterrupted) || ctx.Err() != nil
	cancel()
	m.acting.Lock() // what was being brought or written is cleaned up
	switch {
	case interrupted:
		return Chosen{}, nil
	case err != nil:
		return Chosen{}, fmt.Errorf("show screen: %w", err)
	}
	return m.chosen, m.failed
}
