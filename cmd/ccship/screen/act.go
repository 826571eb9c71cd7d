package screen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/internal/amount"
)

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
