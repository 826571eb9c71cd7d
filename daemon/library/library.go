// Package library reads sessions on disk and on the server: it lists and shows them, finds lost ones, exports, and
// restores files. It needs no daemon and does not know how results are shown. Only Restore and WriteFile write.
package library

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/transcript"
)

// CodeAmbiguous is the code of an error about a name that matches several things.
const CodeAmbiguous = "ambiguous"

// Library gives access to one user's sessions. It is immutable and safe for concurrent use.
type Library struct {
	Roots   []string           // projects folders, which need not exist
	Server  *remote.Client     // nil: no server is set
	Machine string             // the server's name for this user on this machine
	Prices  *transcript.Prices // of sessions that are only on disk; nil: the built-in list
	// Repository returns the repository of a working directory in a worktree of one; "" for others. It may be nil.
	Repository func(cwd string) string
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
	ChangedAt  time.Time `json:"changed_at"` // the time of its newest record
	Messages   int64     `json:"messages"`
	Tokens     int64     `json:"tokens"`
	Cost       *float64  `json:"cost_usd"`                  // null: no known price
	Unpriced   int64     `json:"unpriced_tokens,omitempty"` // not in cost_usd
	Counts     string    `json:"counts"`                    // what is known of the three: Complete, Reading or Unknown
	Bytes      int64     `json:"bytes"`
	Agents     int       `json:"agents"`
	Generation int64     `json:"generation"`
	Path       string    `json:"path,omitempty"` // on disk
}

// Filter selects sessions; the zero value selects all.
type Filter struct {
	Project string    // a project's name, or a folder that contains the working directory
	Machine string    // an id, its prefix, or a host name; "": all
	Since   time.Time // with a record written at or after it
	Text    string    // in title, first prompt, project or session id
	Limit   int
}

// List returns the sessions that changed last, and whether there are more. If the server cannot be reached, it returns
// those on disk and the error.
func (l *Library) List(ctx context.Context, f Filter) (items []Item, more bool, err error) {
	machine, err := l.machine(ctx, f.Machine)
	if err != nil {
		return nil, false, err
	}
	disk := Disk(l.Roots)
	listed := map[string]bool{} // sessions of this machine
	items, more, err = l.onServer(ctx, f, machine, bySession(disk), listed)
	if machine == nil || *machine == l.Machine {
		local, e := l.onDisk(ctx, f, disk, served{items, listed, more && err == nil, err == nil})
		l.nameAlike(local, items)
		items, err = append(items, local...), cmp.Or(err, e)
	}
	slices.SortStableFunc(items, func(a, b Item) int { return b.ChangedAt.Compare(a.ChangedAt) })
	if len(items) > f.Limit {
		items, more = items[:f.Limit], true
	}
	return items, more, err
}

// nameAlike gives sessions of this machine's disk the names that the server says the projects of their folders have.
func (l *Library) nameAlike(local, served []Item) {
	names := map[string]string{}
	for _, i := range served {
		if i.Machine == l.Machine {
			names[i.Cwd] = i.Project
		}
	}
	for i := range local {
		if local[i].Cwd != "" {
			local[i].Project = cmp.Or(names[local[i].Cwd], local[i].Project)
		}
	}
}

// onServer lists sessions on the server.
func (l *Library) onServer(ctx context.Context, f Filter, machine *string,
	paths map[string]File, listed map[string]bool) (items []Item, more bool, err error) {
	if l.Server == nil {
		return nil, false, nil
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
		for _, name := range l.names(s) {
			listed[name] = true
		}
		return true
	})
	return items, more, err
}

func (l *Library) item(s *remote.Session, disk map[string]File) Item {
	i := Item{
		Session: s.SessionID, State: OnServer, Title: s.Summary.Title, Project: s.Project, Cwd: s.Cwd,
		Machine: s.Machine, Host: s.Host, ChangedAt: s.Last, Messages: s.Summary.Messages,
		Tokens: s.Tokens(), Cost: s.Cost, Unpriced: s.Unpriced,
		Bytes: s.Bytes, Agents: s.Agents, Generation: s.Generation, Counts: countsOf(s),
	}
	for _, name := range l.names(s) {
		file, ok := fileOf(disk, name)
		if !ok || i.State == OnBoth {
			continue
		}
		i.State, i.Path = OnBoth, file.Path
		if file.Changed.After(i.ChangedAt) { // lines may be on their way
			if at := file.active(); at.After(i.ChangedAt) {
				i.ChangedAt = at
			}
		}
	}
	return i
}

// bySession are transcripts by session. Of several with one name each but the first is also known as its copy.
func bySession(disk []File) map[string]File {
	out := map[string]File{}
	for _, file := range disk {
		name := file.Session
		for n := 2; out[name].Path != ""; n++ {
			name = file.Session + "~" + strconv.Itoa(n)
		}
		out[name] = file
	}
	return out
}

// fileOf is the transcript on disk of a session. A copy that was numbered while there were more of them is the
// session's.
func fileOf(disk map[string]File, session string) (File, bool) {
	file, ok := disk[session]
	if base, number, copied := strings.Cut(session, "~"); !ok && copied && strings.Trim(number, "0123456789") == "" {
		file, ok = disk[base]
	}
	return file, ok
}

// names are those of a session's transcripts on this machine.
func (l *Library) names(s *remote.Session) (names []string) {
	for _, c := range append([]protocol.SessionCopy{{SessionID: s.SessionID, Machine: s.Machine}}, s.Copies...) {
		if c.Machine == l.Machine {
			names = append(names, c.SessionID)
		}
	}
	return names
}

// served is what the server listed.
type served struct {
	items    []Item
	sessions map[string]bool // of this machine
	more     bool            // the server has more, so it is asked about each
	ok       bool            // it has answered
}

// onDisk lists the sessions on disk that the server did not list, at most one more than the limit.
func (l *Library) onDisk(ctx context.Context, f Filter, disk []File, s served) (items []Item, err error) {
	oldest := time.Time{}
	for _, i := range s.items {
		oldest = i.ChangedAt
	}
	files := byActivity(disk, f.Since, func(file *File) bool {
		return s.sessions[file.Session] || s.more && file.Changed.Before(oldest)
	})
	known := agents{}
	named := f.Text != "" || f.Project != ""
	narrowed := named || !f.Since.IsZero()
	questions := 2 * f.Limit // enough, unless the server filters out very many
	for _, file := range files {
		if len(items) > f.Limit || s.more && file.at.Before(oldest) {
			break
		}
		if !l.takes(&f, file.File) {
			continue
		}
		if l.Server == nil || !s.ok || !s.more && !narrowed {
			items = append(items, l.diskItem(ctx, file, known))
			continue
		}
		if questions--; questions < 0 {
			break
		}
		stored, err := l.Server.Session(ctx, remote.Ref{Session: file.Session, User: remote.Me, Machine: &l.Machine})
		switch {
		case remote.Is(err, control.CodeNoSession):
			items = append(items, l.diskItem(ctx, file, known))
		case err != nil:
			return items, err
		case s.more && !named, stored.Last.Before(f.Since): // written to again; its new lines are on their way
			items = append(items, l.item(&stored, map[string]File{file.Session: file.File}))
		}
	}
	return items, nil
}

// takes says whether the filter selects a transcript on disk, judged by its beginning.
func (l *Library) takes(f *Filter, file File) bool {
	if f.Text == "" && f.Project == "" {
		return true
	}
	h := readHead(file.Path)
	project := l.project(&h, file)
	if l.inProject(&h, file, f.Project) {
		project = f.Project
	}
	return h.matches(file, f, project)
}

// conversation says whether a stream is a session, not the prompt history.
func conversation(s *remote.Session) bool { return s.Path != "history.jsonl" }

// startedIn says whether cwd is folder or below it. It is true if folder is not an absolute path.
func startedIn(cwd, folder string) bool {
	return !filepath.IsAbs(folder) || cwd != "" && sys.Within(folder, cwd)
}

// machine resolves a name to one machine's id; nil: all machines.
func (l *Library) machine(ctx context.Context, name string) (*string, error) {
	if name == "" || name == l.Machine {
		if name == "" {
			return nil, nil
		}
		return &name, nil
	}
	if l.Server == nil {
		return nil, NoServer()
	}
	all, err := l.Server.Machines(ctx)
	if err != nil {
		return nil, err
	}
	var found, hosts []string
	for _, m := range all {
		hosts = append(hosts, m.Host)
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
		hint := "`ccship list --json` shows each session's machine and host"
		if near := amount.Nearest(name, hosts); near != "" {
			hint = "did you mean " + near + "?"
		}
		return nil, control.Usage("the server has no sessions of machine "+name, hint)
	}
	return nil, control.Ambiguous(fmt.Sprintf("%s matches %d machines: %s", name, len(found), strings.Join(found, ", ")),
		"give more of the id")
}

// NoServer is the error of what only a server can answer.
func NoServer() error { return control.NewError(control.StateNoServer, "no server is set", "") }
