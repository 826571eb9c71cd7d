package screen

import (
	tea "charm.land/bubbletea/v2"
)

// key takes a key. Letters write into the box, unless the list has the keys.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	pressed := k.Keystroke()
	if pressed == "ctrl+c" {
		return tea.Quit
	}
	if m.help {
		m.help = false
		return nil
	}
	if cmd, taken := m.anywhere(pressed); taken {
		return cmd
	}
	if m.inList {
		if cmd, taken := m.listKey(pressed); taken {
			return cmd
		}
	}
	before := m.box.String()
	if m.box.key(k) && m.box.String() != before {
		return m.changed()
	}
	return nil
}

// anywhere takes the keys that mean the same in the box and in the list.
func (m *model) anywhere(pressed string) (_ tea.Cmd, taken bool) {
	switch pressed {
	case "esc":
		return tea.Quit, true
	case "enter":
		return m.resume(), true
	case "tab":
		return m.narrow(), true
	case "up", "ctrl+p":
		if m.at == 0 {
			m.inList = false
		}
		return m.move(-1), true
	case "down", "ctrl+n":
		m.inList = len(m.page.rows) > 0
		return m.move(1), true
	case "pgdown", "ctrl+space":
		m.turn(1)
	case "pgup":
		m.turn(-1)
	case "ctrl+o":
		return m.open(), true
	case "ctrl+y":
		return m.copy(), true
	case "ctrl+e":
		return m.export(), true
	case "f1":
		m.help = true
	default:
		return nil, false
	}
	return nil, true
}

// listKey takes the keys that are letters.
func (m *model) listKey(pressed string) (_ tea.Cmd, taken bool) {
	switch pressed {
	case "o":
		return m.open(), true
	case "y":
		return m.copy(), true
	case "e":
		return m.export(), true
	case "j":
		return m.move(1), true
	case "k":
		return m.move(-1), true
	case "space":
		m.turn(1)
	case "b":
		m.turn(-1)
	case "home", "g":
		return m.move(-len(m.page.rows)), true
	case "end", "shift+g":
		return m.move(len(m.page.rows)), true
	case "/":
		m.inList = false
	case "?", "shift+/":
		m.help = true
	default:
		return nil, false
	}
	return nil, true
}

// narrow shows the selected session's project only, or all again.
func (m *model) narrow() tea.Cmd {
	switch r := m.selected(); {
	case m.project != "":
		m.project = ""
	case r == nil || r.Project == "":
		return nil
	default:
		m.project = r.Project
	}
	return m.changed()
}

// turn pages the preview.
func (m *model) turn(pages int) {
	m.roll(pages * max(1, m.layout().preview-1))
}

// roll moves the preview by lines, as far as it goes.
func (m *model) roll(lines int) {
	l := m.layout()
	all, begin := m.conversation(l.previewWidth)
	most := max(0, len(all)-l.preview)
	m.scroll = min(max(begin+m.scroll+lines, 0), max(most, 0)) - begin
}

// wheelLines is how far a step of the mouse wheel goes.
const wheelLines = 3

// wheel moves what the mouse is over.
func (m *model) wheel(at tea.Mouse) tea.Cmd {
	step := 0
	switch at.Button {
	case tea.MouseWheelUp:
		step = -1
	case tea.MouseWheelDown:
		step = 1
	default:
		return nil
	}
	if m.layout().inPreview(at.X, at.Y) {
		m.roll(step * wheelLines)
		return nil
	}
	return m.move(step)
}

// click selects a row.
func (m *model) click(at tea.Mouse) tea.Cmd {
	l := m.layout()
	if at.Button != tea.MouseLeft || l.inPreview(at.X, at.Y) || at.Y < headLines || at.Y >= headLines+l.list {
		return nil
	}
	lines := m.listLines()
	if n := m.top + at.Y - headLines; n < len(lines) && lines[n] >= 0 {
		m.inList = true
		return m.move(lines[n] - m.at)
	}
	return nil
}
