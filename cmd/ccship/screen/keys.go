package screen

import (
	"regexp"
	"strings"
	"sync"
	"unicode"

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

// narrow completes a filter that is being written. Otherwise it writes the selected session's project into the box, or
// takes the project out of it.
func (m *model) narrow() tea.Cmd {
	if m.complete() {
		return m.changed()
	}
	text, project := split(m.box.String())
	switch r := m.selected(); {
	case project != "":
		m.box.set(text)
	case r == nil || r.Project == "":
		return nil
	default:
		m.box.set(strings.TrimLeft("project:"+named(r.Project)+" "+text, " "))
	}
	return m.changed()
}

// narrowed reports whether the box names a project.
func (m *model) narrowed() bool {
	_, project := split(m.box.String())
	return project != ""
}

// narrowing is the filter by a project, as every search box has it. Other commands do not compile it.
var narrowing = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(^|\s)project:(?:"([^"]*)"|(\S+))(\s|$)`)
})

// split returns a query without its first project, and that.
func split(query string) (text, project string) {
	at := narrowing().FindStringSubmatchIndex(query)
	if at == nil {
		return strings.TrimSpace(query), ""
	}
	part := func(n int) string {
		if at[2*n] < 0 {
			return ""
		}
		return query[at[2*n]:at[2*n+1]]
	}
	return strings.TrimSpace(query[:at[0]] + " " + query[at[1]:]), part(2) + part(3)
}

// named returns a name as a query has it.
func named(name string) string {
	if name = strings.ReplaceAll(name, `"`, ""); strings.ContainsFunc(name, unicode.IsSpace) {
		return `"` + name + `"`
	}
	return name
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
	var step int
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
