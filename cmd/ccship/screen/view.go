package screen

import (
	"cmp"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/protocol"
)

// headLines are the box and the line below it.
const headLines = 2

// wide is how many columns a window has at least whose preview is next to the list.
const wide = 132

// layout is where the parts of the screen are.
type layout struct {
	width, height int
	list          int // rows
	listWidth     int
	preview       int // rows; 0: there is no space
	previewWidth  int
	sideBySide    bool // the preview is next to the list
}

func (m *model) layout() layout {
	l := layout{width: max(m.width, 20), height: max(m.height, 5)}
	room := l.height - headLines - 1
	l.listWidth, l.previewWidth = l.width, l.width
	switch {
	case l.width >= wide:
		l.sideBySide = true
		l.listWidth = l.width * 9 / 20
		l.previewWidth = l.width - l.listWidth - 3
		l.list, l.preview = room, room
	case room < 10:
		l.list = room
	default:
		l.list = max(4, room*2/5)
		l.preview = room - l.list - 1
	}
	return l
}

// inPreview reports whether a place of the window is in the preview.
func (l layout) inPreview(x, y int) bool {
	if l.sideBySide {
		return x > l.listWidth && y >= headLines
	}
	return l.preview > 0 && y > headLines+l.list
}

// View draws the screen.
func (m *model) View() tea.View {
	l := m.layout()
	p := painter{colours: m.colours}
	head, cursor := m.box.show(l.width - 3)
	first := p.paint(bold, "› ") + head
	if head == "" {
		first += p.paint(faint, cut("search what was said", l.width-3))
	}
	lines := append([]string{first, m.status(l)}, m.body(l)...)
	lines = append(lines, p.paint(faint, cut(m.keysLine(), l.width)))
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen, v.MouseMode = true, tea.MouseModeCellMotion
	if !m.inList {
		v.Cursor = tea.NewCursor(2+cursor, 0)
	}
	return v
}

// body returns the list and the preview, or the keys.
func (m *model) body(l layout) []string {
	if m.help {
		return fill(strings.Split(helpText, "\n"), l.height-headLines-1, l.width)
	}
	list := m.list(l)
	if l.preview == 0 {
		return list
	}
	preview, begin := m.conversation(l.previewWidth)
	from := min(max(begin+m.scroll, 0), max(len(preview)-1, 0))
	preview = fill(preview[min(from, len(preview)):], l.preview, l.previewWidth)
	p := painter{colours: m.colours}
	if !l.sideBySide {
		return append(append(list, p.paint(faint, m.title(l.width))), preview...)
	}
	for i := range list {
		list[i] = term.Pad(list[i], l.listWidth) + p.paint(faint, " │ ") + preview[i]
	}
	return list
}

// fill is exactly so many lines.
func fill(lines []string, height, width int) []string {
	out := make([]string, height)
	for i := range out {
		if i < len(lines) {
			out[i] = term.Cut(lines[i], width)
		}
	}
	return out
}

// title returns the line above the preview.
func (m *model) title(width int) string {
	text := ""
	if r := m.selected(); r != nil {
		text = " " + cmp.Or(term.Printable(r.Title), protocol.Untitled) + " "
	}
	text = term.Cut("──"+text, width)
	return text + strings.Repeat("─", max(0, width-term.Width(text)))
}

// status returns the line below the box: what was done, what is wrong, or what the list is.
func (m *model) status(l layout) string {
	p := painter{colours: m.colours}
	style, text := faint, m.listed()
	switch {
	case m.said != "" && m.wrong:
		style, text = removed, m.said
	case m.said != "":
		style, text = plain, m.said
	case m.page.query != m.query(): // the list is still another query's
	case m.page.away != "" && m.page.query != "": // nothing on disk ranks
		style, text = match, "on this disk, most words in one line first: "+m.page.away
	case m.page.away != "":
		style, text = match, "on this disk only: "+m.page.away
	case m.page.note != "":
		style, text = match, m.page.note
	case m.page.query == "" && m.notice != "":
		style, text = match, m.notice
	}
	return p.paint(style, term.Cut(term.Printable(text), l.width))
}

// listed says what the list is.
func (m *model) listed() string {
	rows := len(m.page.rows)
	switch {
	case m.asks.shown == 0 && rows == 0, m.page.query != m.query():
		return "searching …"
	case rows == 0 && m.page.query == "":
		return "no sessions yet: use Claude Code, and they appear here"
	case rows == 0 && m.narrowed():
		return "nothing found in this project; ⇥ searches all"
	case rows == 0:
		return "nothing found"
	}
	text := amount.Counted(int64(rows), "session", "sessions")
	if m.page.more {
		text += ", and more"
	}
	return text
}

// keysLine returns the keys that do something now.
func (m *model) keysLine() string {
	project := "⇥ project"
	if m.narrowed() {
		project = "⇥ all"
	}
	if m.inList {
		return "⏎ resume  o open  y copy  e export  space page  " + project + "  ? keys  esc leave"
	}
	return "⏎ resume  ↓ list  ^O open  ^Y copy  ^E export  " + project + "  F1 keys  esc leave"
}

const helpText = `  Enter           resume the session here, in Claude Code
  ↑ ↓             select; in the list j k, Home, End
  Tab             only the selected session's project, and back;
                  after project:, machine:, kind: and is: it completes the name
  o, Ctrl-O       open the viewer at this line
  y, Ctrl-Y       copy the command that resumes it
  e, Ctrl-E       export it as Markdown into this folder
  Space, PgDn     page the conversation; back: b, PgUp
  /, any letter   write in the box; Ctrl-U clears it
  ?, F1           these keys
  Esc             leave

  ↓ gives the keys to the list: o, y, e and Space work there as they are.
  The mouse wheel moves the list or the conversation below it.`
