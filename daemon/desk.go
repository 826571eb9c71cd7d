package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// desk decides what is decided once for a file and kept for good: the name of its stream, its working directory and
// project. And what is asked again at every chunk: whether its project has opted out, and which server gets it.
type desk struct {
	db      *state.DB
	finder  *project.Finder
	rules   atomic.Pointer[rules]
	machine string
	speaks  func(dest string) bool
	open    func(dest string) error // a destination is about to get rows
	graves  *graves

	folders folders

	mu      sync.Mutex
	streams map[string]tail.FileID    // every stream name given so far; guarded by mu
	waiting map[tail.FileID]time.Time // since when a file waits for its working directory; guarded by mu
	notices map[string]notice         // what a person should know of a project, by a working directory in it; guarded by mu
	omitted omissions                 // guarded by mu

	keeping sync.Mutex // held while kept is exchanged
	kept    omissions  // as the state has them; guarded by keeping
}

// load learns which stream names are taken.
func (d *desk) load(ctx context.Context) error {
	facts, err := d.db.LoadFacts(ctx)
	if err != nil {
		return fmt.Errorf("load streams: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, f := range facts {
		if f.Decided {
			d.streams[f.Stream.SessionID] = id
		}
		if folder, _, _ := strings.Cut(f.Stream.Path, "/"); f.Stream.Cwd != "" {
			d.folders.add(folder, f.Stream.Cwd)
		}
	}
	return nil
}

// decision is what a file's lines are to be.
type decision struct {
	facts state.Facts
	fresh bool // it was decided just now: a new transcript
	moved bool // its lines go to another server from here on, or there again: what looks like a rewind is none
}

// decide answers with the facts of a chunk's file, or with the reason why the chunk is not taken now.
func (d *desk) decide(ctx context.Context, c *tail.Chunk) (decision, tail.Result, error) {
	facts, known, err := d.db.Facts(ctx, c.File.ID)
	if err != nil {
		return decision{}, tail.Result{}, fmt.Errorf("read facts: %w", err)
	}
	fresh := !known || !facts.Decided
	if fresh {
		var wait time.Duration
		if facts, wait = d.introduce(ctx, c); wait > 0 {
			return decision{}, tail.Result{Err: tail.ErrLater, After: wait}, nil
		}
	} else {
		learnCwd(&facts, c)
	}
	if d.graves.has(d.streamOf(&facts, c.File)) {
		return decision{}, tail.Result{Err: &optedOut{why: forgottenWhy}}, nil
	}
	policy, dest, result := d.route(&facts, d.rules.Load())
	if result.Err != nil {
		return decision{}, result, nil
	}
	if fresh {
		d.name(&facts, c.File)
		if d.isProjects(policy, dest) {
			facts.SentBefore = sentBefore(policy, facts.Stream.SessionID, c.File.Path)
		}
	}
	moved := facts.Dest != "" && facts.Dest != dest || d.heardLate(&facts)
	if moved {
		if c.From == c.Prev || c.From.Offset != 0 {
			return decision{}, tail.Result{Err: tail.ErrReread}, nil
		}
		facts.Withheld, facts.Plain, facts.SentBefore = 0, false, 0
	}
	facts.Dest = dest
	facts.Stream.MaxEntries = d.limit(policy)
	if err := d.open(dest); err != nil {
		d.notice(facts.Stream.Cwd, notice{err.Error(), "mend server_url"})
		return decision{}, tail.Result{Err: tail.ErrLater}, nil // a file's own trouble, not that of the others in its round
	}
	return decision{facts, fresh, moved}, tail.Result{}, nil
}

// heardLate says that a server which took this file's lines as a plain one speaks the extension by now: it is to get
// everything again, with all that the plain protocol could not carry.
func (d *desk) heardLate(f *state.Facts) bool {
	return (f.Plain || f.Withheld > 0) && d.speaks(f.Dest)
}

// limit is how many entries a request may have: what the project says, else what the user says.
func (d *desk) limit(p project.Policy) int {
	if p.Dir != "" && p.MaxEntries > 0 {
		return p.MaxEntries
	}
	return d.rules.Load().max
}

// introduce decides what a file is from its first lines, or says how long to wait for more of them.
func (d *desk) introduce(ctx context.Context, c *tail.Chunk) (state.Facts, time.Duration) {
	folder := filepath.Base(filepath.Dir(c.File.Path))
	facts := state.Facts{Decided: true}
	facts.Stream.Project = folder
	if c.File.Kind == tail.History {
		facts.Stream.Extended = true
		facts.Stream.ProjectHash = project.Hash("", "history.jsonl", project.Policy{})
		facts.Stream.Project = "history"
		return facts, 0
	}
	head := headOf(c)
	cwd, ok := transcript.FirstCwd(head)
	if c.File.Kind == tail.Agent {
		facts.Stream.Parent = parentOf(c.File.Name, head)
		if !ok && facts.Stream.Parent != "" {
			cwd, ok = d.cwdOf(ctx, facts.Stream.Parent)
		}
		folder = filepath.Base(c.File.ProjectFolder())
		facts.Stream.Project = folder
		ok = ok && facts.Stream.Parent != ""
	}
	if !ok && int64(len(head)) < cwdBytes && c.Oversize == nil {
		if wait := d.wait(c.File.ID); wait > 0 {
			return facts, wait
		}
	}
	d.forgetWait(c.File.ID)
	if ok {
		d.folders.add(folder, cwd)
	} else if cwd == "" {
		cwd = d.folders.find(folder, func(cwd string) bool { return !d.enabled(cwd) })
	}
	facts.Stream.Cwd = cwd
	if cwd != "" {
		facts.Stream.Project = filepath.Base(cwd)
	}
	policy, _ := d.finder.Find(cwd)
	facts.Stream.ProjectHash = project.Hash(cwd, folder, policy)
	return facts, 0
}

// wait says how much longer a file without a working directory is held back.
func (d *desk) wait(id tail.FileID) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	since, ok := d.waiting[id]
	if !ok {
		since = time.Now()
		d.waiting[id] = since
	}
	return cwdWait - time.Since(since)
}

func (d *desk) forgetWait(id tail.FileID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.waiting, id)
}

// cwdOf is the working directory of a session whose main transcript is known.
func (d *desk) cwdOf(ctx context.Context, session string) (string, bool) {
	d.mu.Lock()
	id, ok := d.streams[session]
	d.mu.Unlock()
	if !ok {
		return "", false
	}
	facts, ok, err := d.db.Facts(ctx, id)
	return facts.Stream.Cwd, err == nil && ok && facts.Stream.Cwd != ""
}

// name gives a file its stream name. Two files never share one: the second of a kind gets "~2" and so on, for good.
func (d *desk) name(f *state.Facts, file tail.File) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for n := max(file.Copy, 1); ; n++ {
		name := transcript.StreamName(file.Name, f.Stream.Parent, n)
		if file.Kind == tail.History {
			name = transcript.HistoryName(d.machine, file.Root)
		}
		if owner, taken := d.streams[name]; !taken || owner == file.ID {
			d.streams[name] = file.ID
			f.Stream.SessionID = name
			return
		}
	}
}

// notice is something about a project that a person should know, and what to do about it.
type notice struct{ text, hint string }

// notice keeps what is to be said of a working directory's project; an empty text takes it back.
func (d *desk) notice(cwd string, n notice) {
	d.mu.Lock()
	defer d.mu.Unlock()
	const most = 100
	if n.text == "" {
		delete(d.notices, cwd)
	} else if _, known := d.notices[cwd]; known || len(d.notices) < most {
		d.notices[cwd] = n
	}
}

// sentBefore is how many first lines an earlier hook has sent to the project's own server already. A file that has
// fewer lines than the hook noted was rewound since, and nothing of it counts as sent.
func sentBefore(p project.Policy, session, path string) int64 {
	last, ok := project.LastSent(p.Dir, session)
	if !ok {
		return 0
	}
	if lines, err := countLines(path); err != nil || last >= lines {
		return 0
	}
	return last + 1
}

// countLines counts the lines of a file, a last one without newline included.
func countLines(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var n int64
	buf, last := make([]byte, 256<<10), byte('\n')
	for {
		k, err := f.Read(buf)
		if k > 0 {
			n += int64(bytes.Count(buf[:k], []byte{'\n'}))
			last = buf[k-1]
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, err
		}
	}
	if last != '\n' {
		n++
	}
	return n, nil
}

// parentOf is the session an agent's transcript belongs to: the folder it lies in, or for the older flat ones the
// first sessionId of its records.
func parentOf(name string, head []byte) string {
	if session, _, nested := strings.Cut(name, "/"); nested {
		return session
	}
	id, _ := transcript.FirstSessionID(head)
	return id
}

var _ tail.Sink = (*relay)(nil)
var _ outbox.Queue = (*state.DB)(nil)

// streamID is the file that has a stream's name.
func (d *desk) streamID(name string) (tail.FileID, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, ok := d.streams[name]
	return id, ok
}

// told is what a person should know of projects, each thing once, in a steady order.
func (d *desk) told() []notice {
	d.mu.Lock()
	defer d.mu.Unlock()
	byText := map[string]notice{}
	for _, n := range d.notices {
		byText[n.text] = n
	}
	var out []notice
	for _, text := range slices.Sorted(maps.Keys(byText)) {
		out = append(out, byText[text])
	}
	return out
}
