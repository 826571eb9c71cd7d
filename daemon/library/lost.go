package library

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
)

// Lost lists sessions that are not on this disk.
type Lost struct {
	SchemaVersion int `json:"schema_version"`
	// Gone are sessions in the prompt history that neither the disk nor the server has. Only their prompts are left.
	Gone []Gone `json:"gone"`
	// Restorable are this machine's sessions that only the server has.
	Restorable []Item `json:"restorable"`
}

// Gone is a session of which only the prompts are left.
type Gone struct {
	Session string    `json:"session"`
	Project string    `json:"project"` // the folder it was started in
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
	Count   int       `json:"prompts"`
	Prompts []Prompt  `json:"texts"` // the first ones
}

// Prompt is a line of the prompt history.
type Prompt struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// keptPrompts is how many prompts of a session are kept, keptText how many bytes of each.
const (
	keptPrompts = 20
	keptText    = 2000
)

// Lost finds the sessions that are missing on this machine's disk.
func (l *Library) Lost(ctx context.Context) (Lost, error) {
	if l.Server == nil {
		return Lost{}, NoServer()
	}
	out := Lost{SchemaVersion: control.SchemaVersion, Gone: []Gone{}, Restorable: []Item{}}
	named := map[string]*Gone{}
	for _, dir := range claudeFolders(l.Roots) {
		if err := readHistory(ctx, filepath.Join(dir, "history.jsonl"), named); err != nil {
			return out, err
		}
	}
	disk := bySession(Disk(l.Roots))
	isHere := func(session string) bool {
		_, is := fileOf(disk, session)
		return is
	}
	err := l.Server.Sessions(ctx, remote.Query{}, 1000, func(s *remote.Session) bool {
		delete(named, s.SessionID)
		if s.Machine == l.Machine && !isHere(s.SessionID) && conversation(s) {
			out.Restorable = append(out.Restorable, l.item(s, nil))
		}
		return true
	})
	if err != nil {
		return out, err
	}
	for session, g := range named {
		if !isHere(session) {
			out.Gone = append(out.Gone, *g)
		}
	}
	slices.SortFunc(out.Gone, func(a, b Gone) int {
		return cmp.Or(b.Last.Compare(a.Last),
			cmp.Compare(a.Session, b.Session))
	})
	slices.SortStableFunc(out.Restorable, func(a, b Item) int { return b.ChangedAt.Compare(a.ChangedAt) })
	return out, nil
}

// claudeFolders returns the folders that hold the projects folders, each once.
func claudeFolders(roots []string) (dirs []string) {
	for _, root := range roots {
		if dir := filepath.Dir(root); filepath.Base(root) == "projects" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// readHistory collects the sessions in a prompt history. It skips lines that it cannot parse.
func readHistory(ctx context.Context, path string, into map[string]*Gone) error {
	err := eachLine(ctx, path, func(line []byte, _ bool) error {
		var said struct {
			Display   string  `json:"display"`
			Timestamp float64 `json:"timestamp"` // milliseconds
			Project   string  `json:"project"`
			Session   string  `json:"sessionId"`
		}
		if json.Unmarshal(line, &said) == nil && said.Session != "" {
			note(into, said.Session, said.Project, Prompt{time.UnixMilli(int64(said.Timestamp)).UTC(), said.Display})
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func note(into map[string]*Gone, session, project string, p Prompt) {
	g := into[session]
	if g == nil {
		g = &Gone{Session: session, Project: project, First: p.At, Last: p.At}
		into[session] = g
	}
	g.Count++
	if p.At.Before(g.First) {
		g.First = p.At
	}
	if p.At.After(g.Last) {
		g.Last = p.At
	}
	if len(g.Prompts) < keptPrompts {
		if len(p.Text) > keptText {
			p.Text = strings.ToValidUTF8(p.Text[:keptText], "") + "…"
		}
		g.Prompts = append(g.Prompts, p)
	}
}
