package screen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/internal/amount"
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

// doneMsg says how an action ended.
type doneMsg struct {
	text   string
	err    error
	chosen Chosen
}

func (m *model) done(d doneMsg) tea.Cmd {
	m.busy = false
	if d.chosen.Session != "" {
		m.chosen = d.chosen
		return tea.Quit
	}
	m.said, m.wrong = d.text, d.err != nil
	if known, ok := errors.AsType[*control.Error](d.err); ok && known.Hint != "" {
		m.said = known.Message + "; " + known.Hint
	} else if d.err != nil {
		m.said = d.err.Error()
	}
	return nil
}

// act does something with the selected session, once at a time.
func (m *model) act(doing string, f func(ctx context.Context, r row) doneMsg) tea.Cmd {
	r := m.selected()
	if r == nil || m.busy {
		return nil
	}
	m.busy, m.said, m.wrong = true, doing, false
	chosen := *r
	return func() tea.Msg {
		m.acting.Lock()
		defer m.acting.Unlock()
		return f(m.ctx, chosen)
	}
}

// resume brings the session here, and leaves the screen for Claude.
func (m *model) resume() tea.Cmd {
	return m.act("bringing the session here …", func(ctx context.Context, r row) doneMsg {
		w := library.ResumeRequest{Session: cmp.Or(r.parent, r.Session), Machine: r.Machine}
		chosen, err := Bring(ctx, m.source.Library, w, func() string { return m.source.folderFor(ctx, &r) })
		return doneMsg{err: err, chosen: chosen}
	})
}

// Bring makes a session one that Claude Code can resume here. One that was written here last is used as it is; folder
// says where another goes on.
func Bring(ctx context.Context, l *library.Library, w library.ResumeRequest, folder func() string) (Chosen, error) {
	found, err := l.Find(ctx, w.Session)
	if err != nil {
		return Chosen{}, err
	}
	if p, ok := l.Running()[found.Session]; ok && !w.Force {
		return Chosen{}, control.NewError(library.CodeLive, fmt.Sprintf("process %d has this session open", p.PID),
			"go on there, or end it first")
	}
	if len(found.Files) > 0 && latestIsHere(&found, l.Machine) {
		own := found.Files[0].Folder()
		if info, err := os.Stat(own); err == nil && info.IsDir() {
			return Chosen{Session: found.Session, Folder: own}, nil
		}
	}
	w.Folder = folder()
	brought, err := l.Resume(ctx, w)
	return Chosen{Session: brought.Session, Folder: brought.Folder, Brought: &brought}, err
}

// latestIsHere reports whether no machine but this one wrote to a session last.
func latestIsHere(f *library.Found, machine string) bool {
	for i, s := range f.Stored {
		if i == 0 || s.Last.After(f.Stored[0].Last) {
			if s.Machine != machine {
				return false
			}
		}
	}
	return true
}

// folderFor returns where a session of any machine goes on here: the folder that it had, if this machine has it; the
// current one, if that is of its project; another in which sessions of its project ran; else the current one.
func (s *source) folderFor(ctx context.Context, r *row) string {
	there := func(folder string) bool {
		info, err := os.Stat(folder)
		return err == nil && info.IsDir() && filepath.IsAbs(folder)
	}
	if there(r.Cwd) || r.Project == s.Project && r.Project != "" {
		return cmp.Or(map[bool]string{true: r.Cwd}[there(r.Cwd)], s.Folder)
	}
	for _, i := range s.Library.Recent(ctx, r.Project, foundOnDisk) {
		if r.Project != "" && there(i.Cwd) {
			return i.Cwd
		}
	}
	return s.Folder
}

// open shows the session in the viewer, at its line.
func (m *model) open() tea.Cmd {
	return m.act("opening the viewer …", func(ctx context.Context, r row) doneMsg {
		if r.address == "" || m.source.Browse == nil {
			return doneMsg{err: control.Failed("this session is only on disk", "the viewer shows what the server has")}
		}
		text, err := m.source.Browse(ctx, r.address)
		return doneMsg{text: text, err: err}
	})
}

// command returns what to type in a shell to resume a session.
func (r *row) command() string {
	if r.Path != "" && r.Cwd != "" {
		return show.ResumeCommand(r.Cwd, r.Session)
	}
	return `eval "$(ccship resume ` + term.Quote(cmp.Or(r.parent, r.Session)) + ` --here)"`
}

// copy puts the command into the clipboard, by the terminal.
func (m *model) copy() tea.Cmd {
	r := m.selected()
	if r == nil {
		return nil
	}
	m.said, m.wrong = "copied: "+r.command(), false
	return tea.SetClipboard(r.command())
}

// export writes the session as Markdown into the current folder.
func (m *model) export() tea.Cmd {
	return m.act("exporting …", func(ctx context.Context, r row) doneMsg {
		path := filepath.Join(m.source.Folder, fileName(&r))
		which := library.Copy{Machine: r.Machine, User: r.user}
		n, err := library.WriteFile(path, false, func(w io.Writer) error {
			return m.source.Library.Export(ctx, r.Session, which, "md", w)
		})
		return doneMsg{text: "wrote " + path + " (" + amount.Size(n) + ")", err: err}
	})
}

// fileName returns a name for an export: words of the title, and the beginning of the id.
func fileName(r *row) string {
	words := strings.FieldsFunc(strings.ToLower(term.Printable(r.Title)), func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c)
	})
	id, _, _ := strings.Cut(filepath.Base(filepath.FromSlash(r.Session)), "-")
	return strings.Join(append(words[:min(len(words), 6)], id), "-") + ".md"
}
