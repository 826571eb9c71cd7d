// Package library puts the sessions on disk and those on the server side by side: it lists and shows them, finds the
// lost ones, and puts files back. It needs no daemon. It reads transcripts where they are; Restore is all that ever
// writes, because its caller was asked to by a person.
package library

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
)

// CodeAmbiguous is the code of an error about a name that stands for several things.
const CodeAmbiguous = "ambiguous"

// Library is one user's sessions. Immutable; safe for concurrent use.
type Library struct {
	Roots   []string       // projects folders, which need not exist
	Server  *remote.Client // nil: none is set
	Machine string         // the server's name for this user on this machine
}

// Where a session is.
const (
	OnDisk   = "local"
	OnServer = "server"
	OnBoth   = "both"
)

// Item is a session in a list.
type Item struct {
	Session    string    `json:"session"`
	State      string    `json:"state"` // "local", "server" or "both"
	Title      string    `json:"title"`
	Project    string    `json:"project"`
	Cwd        string    `json:"cwd,omitempty"`
	Machine    string    `json:"machine,omitempty"`
	Host       string    `json:"host,omitempty"`
	ChangedAt  time.Time `json:"changed_at"`
	Messages   int64     `json:"messages"`
	Tokens     int64     `json:"tokens"`
	Cost       *float64  `json:"cost_usd"` // null: no price is known
	Bytes      int64     `json:"bytes"`
	Agents     int       `json:"agents"`
	Generation int64     `json:"generation"`
	Path       string    `json:"path,omitempty"` // on disk
}

// Filter selects sessions; the zero value selects all.
type Filter struct {
	Project string    // name of a project, or a folder that they were started in or below
	Machine string    // its id, the beginning of it, or a host name; "": all, this one's first
	Since   time.Time // changed at or after it
	Text    string    // in title, first prompt, project or session id
	Limit   int
}

// List answers the sessions that were changed last, and whether there are more. When the server cannot be asked it
// answers those on disk, and the error.
func (l *Library) List(ctx context.Context, f Filter) (items []Item, more bool, err error) {
	machine, err := l.machine(ctx, f.Machine)
	if err != nil {
		return nil, false, err
	}
	disk := Disk(l.Roots)
	items, more, err = l.onServer(ctx, f, machine, disk)
	if machine == nil || *machine == l.Machine {
		local, e := l.onDisk(ctx, f, disk, items, more && err == nil, err == nil)
		items, err = append(items, local...), cmp.Or(err, e)
	}
	slices.SortStableFunc(items, func(a, b Item) int { return b.ChangedAt.Compare(a.ChangedAt) })
	if len(items) > f.Limit {
		items, more = items[:f.Limit], true
	}
	return items, more, err
}

// onServer lists what the server has.
func (l *Library) onServer(ctx context.Context, f Filter, machine *string, disk []File) (items []Item, more bool, err error) {
	if l.Server == nil {
		return nil, false, nil
	}
	paths := map[string]File{}
	for _, file := range disk {
		paths[file.Session] = file
	}
	q := remote.Query{Machine: machine, Text: f.Text, Recent: true}
	if !filepath.IsAbs(f.Project) {
		q.Project = f.Project
	}
	if !f.Since.IsZero() {
		q.Since = f.Since.UTC().Format(time.RFC3339Nano)
	}
	err = l.Server.Sessions(ctx, q, f.Limit+1, func(s *remote.Session) bool {
		if !conversation(s) || !startedIn(s.Cwd, f.Project) {
			return true
		}
		if len(items) == f.Limit {
			more = true
			return false
		}
		items = append(items, l.item(s, paths))
		return true
	})
	return items, more, err
}

func (l *Library) item(s *remote.Session, disk map[string]File) Item {
	i := Item{
		Session: s.SessionID, State: OnServer, Title: cmp.Or(s.Summary.Title, s.Summary.FirstPrompt), Project: s.Project, Cwd: s.Cwd,
		Machine: s.Machine, Host: s.Host, ChangedAt: s.Last, Messages: s.Summary.Messages, Tokens: s.Tokens(), Cost: s.Cost,
		Bytes: s.Bytes, Agents: s.Agents, Generation: s.Generation,
	}
	if file, ok := disk[s.SessionID]; ok && s.Machine == l.Machine {
		i.State, i.Path = OnBoth, file.Path
		i.ChangedAt = laterOf(i.ChangedAt, file.Changed)
	}
	return i
}

func laterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b.UTC()
	}
	return a
}

// onDisk lists the sessions on disk that are not among those of the server, at most one more than the limit. full says
// that the server has more than those, so that it is asked about each. asked says that there was no trouble with it so
// far.
func (l *Library) onDisk(ctx context.Context, f Filter, disk []File, have []Item, full, asked bool) (items []Item, err error) {
	listed := map[string]bool{}
	for _, i := range have {
		listed[i.Session] = listed[i.Session] || i.Machine == l.Machine
	}
	narrowed := f.Text != "" || f.Project != "" || !f.Since.IsZero()
	questions := 2 * f.Limit // enough, unless very many are there that it leaves out
	for _, file := range disk {
		if len(items) > f.Limit || file.Changed.Before(f.Since) {
			break
		}
		if listed[file.Session] || !f.takes(file) {
			continue
		}
		if l.Server != nil && asked && (full || narrowed) {
			if questions--; questions < 0 {
				break
			}
			s, err := l.Server.Session(ctx, remote.Ref{Session: file.Session, Machine: &l.Machine})
			if err == nil && !narrowed { // written to again, after a long time
				items = append(items, l.item(&s, map[string]File{file.Session: file}))
			}
			if err == nil {
				continue // what it leaves out is not what was asked for
			}
			if !remote.Is(err, control.CodeNoSession) {
				return items, err
			}
		}
		items = append(items, readHead(file.Path).item(file, l.Machine))
	}
	return items, nil
}

// takes says whether a transcript on disk is selected, as far as its beginning tells.
func (f *Filter) takes(file File) bool {
	return f.Text == "" && f.Project == "" || readHead(file.Path).matches(file, f)
}

// conversation says whether a stream is a session, not the prompt history.
func conversation(s *remote.Session) bool { return s.Path != "history.jsonl" }

// startedIn says whether a folder is another one, or below it; every folder is below what is no path.
func startedIn(cwd, folder string) bool {
	if !filepath.IsAbs(folder) {
		return true
	}
	rel, err := filepath.Rel(folder, cwd)
	return cwd != "" && err == nil && filepath.IsLocal(rel)
}

// machine finds the machine that a person means; nil: all.
func (l *Library) machine(ctx context.Context, name string) (*string, error) {
	if name == "" || name == l.Machine {
		if name == "" {
			return nil, nil
		}
		return &name, nil
	}
	if l.Server == nil {
		return nil, noServer()
	}
	all, err := l.Server.Machines(ctx)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, m := range all {
		if m.Machine == name || m.Host == name || strings.HasPrefix(m.Machine, name) {
			if !slices.Contains(found, m.Machine) {
				found = append(found, m.Machine)
			}
		}
	}
	switch len(found) {
	case 1:
		return &found[0], nil
	case 0:
		return nil, control.NewError("no_machine", "the server has no session of a machine "+name,
			"`ccship sessions list --json` names each session's machine and host")
	}
	return nil, control.Ambiguous(fmt.Sprintf("%s stands for %d machines: %s", name, len(found), strings.Join(found, ", ")),
		"give more of the id")
}

func noServer() error {
	return control.NewError("no_server", "no server is set", "")
}
