package route

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

const (
	cwdWait    = 2 * time.Second // how long to hold back a file whose first records name no working directory
	parentHead = 256 << 10       // bytes of a session's transcript that are read for an agent's
	cwdBytes   = 1 << 20         // size at which such a file is delivered under its folder's name
)

// identify determines what a file is from its first lines, or returns how long to wait for more of them.
func (r *Router) identify(ctx context.Context, c *tail.Chunk) (state.Routing, time.Duration) {
	facts := state.Routing{Decided: true}
	if c.File.Kind == tail.History {
		facts.Stream.Extended = true
		facts.Stream.ProjectHash = project.Hash("", "history.jsonl", project.Policy{}, nil)
		facts.Stream.Project = "history"
		return facts, 0
	}
	folder := filepath.Base(c.File.ProjectFolder())
	facts.Stream.Project = folder
	head := firstBytes(c)
	cwd, ok := transcript.FirstCwd(head)
	if c.File.Kind == tail.Agent {
		parent := parentOf(c.File.Name, head)
		facts.Stream.Parent, facts.ParentCwd = transcript.EscapeName(parent), r.parentCwd(ctx, c.File, parent)
		if !ok {
			cwd, ok = facts.ParentCwd, facts.ParentCwd != ""
		}
		ok = ok && facts.Stream.Parent != ""
	}
	if !ok && int64(len(head)) < cwdBytes && c.Oversize == nil {
		if wait := r.wait(c.File.ID, cwdWait); wait > 0 {
			return facts, wait
		}
		r.waited(c.File.ID)
	}
	if ok {
		r.folders.add(folder, cwd)
	} else if cwd == "" {
		cwd = r.folders.find(folder, func(cwd string) bool { return !enabled(r.projects, cwd) })
	}
	facts.Stream.Cwd = cwd
	policy, _ := r.projects.Find(cwd)
	if cwd != "" {
		facts.Stream.Project = transcript.FolderName(cmp.Or(policy.Top(), cwd))
	}
	facts.Stream.ProjectHash = project.Hash(cwd, folder, policy, r.rules.Load().TrustedProjects)
	if !policy.Gone {
		r.places.set(&facts.Stream)
	} else if was, ok := r.places.find(cwd); ok {
		facts.Stream.ProjectHash, facts.Stream.Project, facts.Stream.Repository = was.hash, was.project, was.repository
	}
	return facts, 0
}

// wait returns how much longer a file is held back, of so long at most.
func (r *Router) wait(id tail.FileID, most time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	since, ok := r.waiting[id]
	if !ok {
		since = time.Now()
		r.waiting[id] = since
	}
	return most - time.Since(since)
}

// waited ends the wait for a file.
func (r *Router) waited(id tail.FileID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, id)
}

// parentCwd returns the working directory of an agent's session: of its main transcript, which may not have been read
// yet, or else one that is excluded, of any transcript in the same folder; "" when it is not known.
func (r *Router) parentCwd(ctx context.Context, agent tail.File, session string) string {
	if session == "" {
		return ""
	}
	if id, ok := r.streams.id(transcript.EscapeName(session)); ok {
		if facts, ok, err := r.db.Files.Routing(ctx, id); err == nil && ok && facts.Stream.Cwd != "" {
			return facts.Stream.Cwd
		}
	}
	folder := agent.ProjectFolder()
	if cwd := cwdOnDisk(folder, session); cwd != "" {
		return cwd
	}
	return r.folders.find(filepath.Base(folder), func(cwd string) bool { return !enabled(r.projects, cwd) })
}

// cwdOnDisk returns the working directory of a session's transcript in a project's folder; "" when it is not there.
func cwdOnDisk(folder, session string) string {
	if filepath.Base(session) != session {
		return ""
	}
	cwd, _ := transcript.FirstCwd(readHead(filepath.Join(folder, session+".jsonl")))
	return cwd
}

// readHead returns the start of a file; nil when it cannot be read.
func readHead(path string) []byte {
	info, err := os.Stat(path) // to open a pipe could block for ever
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := sys.OpenRegular(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, parentHead))
	if err != nil {
		return nil
	}
	return head
}

// StreamName returns the name of a file's stream, or the one it would get if no other file had it.
func (r *Router) StreamName(f *state.Routing, file tail.File) string {
	if f.Stream.SessionID != "" {
		return f.Stream.SessionID
	}
	return streamName(file, r.machine, f.Stream.Parent, file.Copy)
}

// parentOf returns the session of an agent's transcript: the folder that it lies in, or in the older flat layout the
// first sessionId of its records.
func parentOf(name string, head []byte) string {
	if session, _, nested := strings.Cut(name, "/"); nested {
		return session
	}
	id, _ := transcript.FirstSessionID(head)
	return id
}

// firstBytes returns the start of a chunk: its whole lines, or a first line that has no end yet.
func firstBytes(c *tail.Chunk) []byte {
	if len(c.Lines) > 0 {
		return c.Lines
	}
	return c.Provisional
}

// learnCwd finds the working directory of a file whose first lines named none, or that was written anew: a user who
// moves a project rewrites its paths. The stream's name stays, and the hash: it is still the same project.
func (r *Router) learnCwd(f *state.Routing, c *tail.Chunk) {
	cwd, ok := transcript.FirstCwd(firstBytes(c))
	if f.Stream.Extended || !ok || cwd == f.Stream.Cwd {
		return
	}
	if f.Stream.Cwd != "" {
		policy, _ := r.projects.Find(cwd)
		f.Stream.Project = transcript.FolderName(cmp.Or(policy.Top(), cwd))
	}
	f.Stream.Cwd = cwd
}
