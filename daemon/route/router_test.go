package route

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

const (
	sessionA = "0a0a0a0a-0000-4000-8000-000000000001"
	own      = "https://own.example"
)

// servers is Destinations: which speak the extension, and which cannot be opened.
type servers struct{ speaks, broken map[string]bool }

func (s servers) SpeaksExtension(dest string) bool { return s.speaks[dest] }

func (s servers) Open(dest string) error {
	if s.broken[dest] {
		return errors.New("no address")
	}
	return nil
}

// bench is a router on a real state.
type bench struct {
	t       *testing.T
	db      *state.DB
	servers servers
	rules   Rules
	router  *Router
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{
		t: t, servers: servers{speaks: map[string]bool{}, broken: map[string]bool{}},
		rules: Rules{OwnServer: own, History: true, MaxEntries: 50},
	}
	b.open(filepath.Join(t.TempDir(), "state.db"))
	return b
}

// open opens the state at path, and makes a router on it.
func (b *bench) open(path string) {
	b.t.Helper()
	db := kit.Try(state.Open(b.t.Context(), state.Options{Path: path})).Must(b.t)
	b.t.Cleanup(func() { db.Close() })
	b.db = db
	b.load()
}

// load makes another router on the open state, as the next daemon does.
func (b *bench) load() {
	b.t.Helper()
	projects := project.NewFinder()
	projects.Recheck = 0
	router := kit.Try(New(b.t.Context(), Config{
		State: b.db, Projects: projects, Destinations: b.servers, Machine: "m", Rules: b.rules,
	})).Must(b.t)
	b.router = router
}

// chunk is the first chunk of a main transcript.
func chunk(id tail.FileID, lines string) *tail.Chunk {
	path := filepath.Join("/claude/projects/-shop", sessionA+".jsonl")
	return &tail.Chunk{
		File:  tail.File{ID: id, Path: path, Root: "/claude/projects", Name: sessionA, Copy: 1},
		Lines: []byte(lines), To: tail.Cursor{Offset: int64(len(lines)), Line: 1},
	}
}

func (b *bench) decide(c *tail.Chunk) Decision {
	b.t.Helper()
	for {
		d := kit.Try(b.router.Decide(b.t.Context(), c)).Must(b.t)
		if d.Verdict != Later || d.After <= 0 || d.After > repositoryPoll { // else its repository is being read
			return d
		}
		select {
		case <-time.After(d.After):
		case <-b.t.Context().Done():
			b.t.Fatal("the repository is never read")
		}
	}
}

// commit makes a decision durable, as the relay does.
func (b *bench) commit(c *tail.Chunk, d Decision) {
	b.t.Helper()
	c.Tracked = tail.Tracked{File: c.File, Cursor: c.To}
	d.Facts.Stream.ID = uint64(c.File.ID)
	step := state.Step{Prev: c.Prev, From: c.From, Tracked: c.Tracked, Routing: d.Facts}
	errs, err := b.db.Commit(b.t.Context(), []state.Step{step})
	kit.Must(b.t, errors.Join(append(errs, err)...))
}

// projectFolder makes a folder, with a .codetracker/config.json if it has a text.
func projectFolder(t *testing.T, config string) string {
	t.Helper()
	dir := t.TempDir()
	if config == "" {
		return dir
	}
	kit.Must(t, os.Mkdir(filepath.Join(dir, ".codetracker"), 0o700))
	kit.Must(t, os.WriteFile(filepath.Join(dir, ".codetracker", "config.json"), []byte(config), 0o600))
	return dir
}

func lineIn(dir string) string { return `{"type":"user","cwd":"` + filepath.ToSlash(dir) + `"}` + "\n" }

func TestDecideNewTranscript(t *testing.T) {
	b := newBench(t)
	c := chunk(1, lineIn("/home/kim/shop"))
	d := b.decide(c)
	kit.Check(t, d.Verdict == Take && d.New && !d.DestinationChanged, "a new transcript: %+v", d)
	s := d.Facts.Stream
	kit.Check(t, s.SessionID == sessionA && s.Cwd == "/home/kim/shop" && s.Project == "shop" && s.MaxEntries == 50 && d.Facts.Dest == own,
		"its facts: %+v", d.Facts)
	b.commit(c, d)
	next := chunk(1, lineIn("/home/kim/shop"))
	next.Prev, next.From = c.To, c.To
	d = b.decide(next)
	kit.Check(t, d.Verdict == Take && !d.New, "its second chunk: %+v", d)
	got := b.decide(chunk(2, lineIn("/home/kim/shop"))).Facts.Stream.SessionID
	kit.Check(t, got == sessionA+"~2", "a second file of the name is stream %s", got)
}

// TestDecideGoneWorktree: a work tree that is gone is of the project that it was of, in this run and the next; a folder
// that is there says itself what it is.
func TestDecideGoneWorktree(t *testing.T) {
	b := newBench(t)
	root := t.TempDir()
	put := func(path, text string) {
		t.Helper()
		path = filepath.Join(root, path)
		kit.WriteFile(t, path, text)
	}
	put("shop/.git/config", "[core]\n")
	put("shop/.git/worktrees/w/commondir", "../..\n")
	tree := filepath.Join(root, "elsewhere", "fix")
	put("elsewhere/fix/.git", "gitdir: "+filepath.Join(root, "shop/.git/worktrees/w")+"\n")
	c := chunk(1, lineIn(tree))
	first := b.decide(c)
	b.commit(c, first)
	s := first.Facts.Stream
	kit.Require(t, s.Project == "shop", "the work tree is of %q", s.Project)
	kit.Must(t, os.RemoveAll(filepath.Dir(tree)))
	kit.Must(t, os.RemoveAll(filepath.Join(root, "shop", ".git", "worktrees")))
	for run := range 2 {
		d := b.decide(chunk(tail.FileID(run+2), lineIn(tree)))
		if s := d.Facts.Stream; s.Project != "shop" || s.ProjectHash != first.Facts.Stream.ProjectHash || s.Cwd != tree {
			t.Errorf("run %d: gone, it is of %q, hash %.8s, not %.8s", run, s.Project, s.ProjectHash, first.Facts.Stream.ProjectHash)
		}
		b.load()
	}
	put("elsewhere/fix/plain", "\n")
	s = b.decide(chunk(5, lineIn(tree))).Facts.Stream
	kit.Check(t, s.Project == "fix", "another folder in its place is of %q", s.Project)
	s = b.decide(chunk(7, lineIn(filepath.Join(root, "shop", "cart", "sums")))).Facts.Stream
	kit.Check(t, s.Project == "shop", "a folder of a repository is of %q", s.Project)
	s = b.decide(chunk(6, lineIn(filepath.Join(root, "never")))).Facts.Stream
	kit.Check(t, s.Project == "never", "a folder that was never seen is of %q", s.Project)
}

func TestDecideWaitsForWorkingDirectory(t *testing.T) {
	b := newBench(t)
	c := chunk(1, `{"type":"mode"}`+"\n")
	d := b.decide(c)
	kit.Check(t, d.Verdict == Later && d.After > 0 && d.After <= cwdWait, "without a working directory: %+v", d)
	b.router.waiting[1] = time.Now().Add(-cwdWait)
	d = b.decide(c)
	kit.Check(t, d.Verdict == Take && d.Facts.Stream.Project == "-shop", "after the wait: %+v", d)
}

func TestDecideExcluded(t *testing.T) {
	b := newBench(t)
	dir := projectFolder(t, `{"conversation_tracking":{"enabled":false}}`)
	d := b.decide(chunk(1, lineIn(dir)))
	kit.Check(t, d.Verdict == Excluded && d.Exclusion.Cwd == filepath.ToSlash(dir) && d.Exclusion.Why != "",
		"of an excluded project: %+v", d)
	kit.Same(t, "the list of excluded files", cmp.Diff(map[tail.FileID]Exclusion{1: d.Exclusion}, b.router.Excluded()))
	kit.Check(t, !b.router.ExclusionEnded(), "the exclusion ended by itself")
	kit.Must(t, os.RemoveAll(filepath.Join(dir, ".codetracker")))
	kit.Check(t, b.router.ExclusionEnded() && len(b.router.Excluded()) == 0,
		"the opt-out was taken back: %v", b.router.Excluded())
	d = b.decide(chunk(1, lineIn(dir)))
	kit.Check(t, d.Verdict == Take, "after the exclusion: %+v", d)
}

func TestDecideDestinationChanged(t *testing.T) {
	b := newBench(t)
	c := chunk(1, lineIn("/home/kim/shop"))
	b.commit(c, b.decide(c))
	b.router.SetRules(Rules{OwnServer: "https://other.example"})
	next := chunk(1, lineIn("/home/kim/shop"))
	next.Prev, next.From = c.To, c.To
	d := b.decide(next)
	kit.Check(t, d.Verdict == Reread, "lines in the middle for another server: %+v", d)
	again, err := b.router.Reroute(t.Context())
	kit.Check(t, err == nil && cmp.Equal(again, []tail.FileID{1}), "files to deliver again: %v %v", again, err)
	next.From = tail.Cursor{Generation: 1}
	d = b.decide(next)
	kit.Check(t, d.Verdict == Take && d.DestinationChanged && d.Facts.Dest == "https://other.example", "from line 0: %+v", d)
}

func TestDecideServerSpeaksExtension(t *testing.T) {
	b := newBench(t)
	c := chunk(1, lineIn("/home/kim/shop"))
	b.commit(c, b.decide(c))
	kit.Must(t, b.db.Outbox.Settle(t.Context(), []outbox.Settlement{{Dest: own, Stream: 1, Plain: true}}))
	next := chunk(1, lineIn("/home/kim/shop"))
	next.Prev, next.From = c.To, c.To
	d := b.decide(next)
	kit.Check(t, d.Verdict == Take, "while the server is a plain one: %+v", d)
	b.servers.speaks[own] = true
	d = b.decide(next)
	kit.Check(t, d.Verdict == Reread, "once it speaks the extension: %+v", d)
}

func TestDecideDestinationCannotBeOpened(t *testing.T) {
	b := newBench(t)
	b.servers.broken[own] = true
	d := b.decide(chunk(1, lineIn("/home/kim/shop")))
	kit.Check(t, d.Verdict == Later, "a server that is no address: %+v", d)
	advice := b.router.Advice()
	kit.Check(t, len(advice) == 1 && advice[0].Text == "no address" && advice[0].Hint != "", "advice: %+v", advice)
}

func TestDecideForgotten(t *testing.T) {
	b := newBench(t)
	kit.Must(t, b.router.Tombstones.Put(t.Context(), Tombstone{Session: sessionA}))
	d := b.decide(chunk(1, lineIn("/home/kim/shop")))
	kit.Check(t, d.Verdict == Excluded && d.Exclusion.Why == Forgotten, "a new file of a forgotten session: %+v", d)
	b.load()
	kit.Check(t, b.router.Forgotten(sessionA+"/agent-a1") && !b.router.Forgotten("other"), "tombstones after a restart")
}

func TestExcludedTypesIncluded(t *testing.T) {
	b := newBench(t)
	b.rules.ExcludeTypes = map[string]bool{"progress": true}
	b.load()
	c := chunk(1, lineIn("/home/kim/shop"))
	d := b.decide(c)
	d.Facts.Excluded = 3
	b.commit(c, d)
	reroute := func(what string, want ...tail.FileID) {
		t.Helper()
		again, err := b.router.Reroute(t.Context())
		kit.Check(t, err == nil && cmp.Equal(again, want), "%s: %v %v, want %v", what, again, err, want)
	}
	reroute("the same types")
	b.rules.ExcludeTypes = nil
	b.load()
	reroute("one type fewer", 1)
	b.load()
	reroute("for the second time, before it was delivered", 1)
	old := b.router.Rules()
	b.router.SetRules(b.rules)
	restarted := func(by *Rules) {
		t.Helper()
		kit.Should(t, b.router.Restarted(t.Context(), 1, by))
	}
	restarted(old)
	reroute("it was delivered by other rules", 1)
	restarted(b.router.Rules())
	reroute("it was delivered")
	b.load()
	reroute("after a restart")
	kit.Must(t, b.db.PutMeta(context.Background(), "exclude_types", []byte("progress mode")))
	b.load()
	reroute("a list of an earlier version", 1)
}

// A project that was moved, with the paths in its transcripts rewritten, has its new folder and keeps its hash. Reading
// on from the middle changes nothing: a session may change its folder.
func TestDecideMovedProject(t *testing.T) {
	b := newBench(t)
	before, after := t.TempDir(), filepath.Join(t.TempDir(), "store")
	c := chunk(1, lineIn(before))
	first := b.decide(c)
	b.commit(c, first)
	first.Facts.Stream.ID = 1
	on := chunk(1, lineIn(after))
	on.Prev, on.From, on.To = c.To, c.To, tail.Cursor{Offset: c.To.Offset + 10, Line: 2}
	kit.Equal(t, "a line in another folder", b.decide(on).Facts.Stream, first.Facts.Stream)
	again := chunk(1, lineIn(after))
	again.Prev, again.From.Generation, again.To.Generation = c.To, 1, 1
	want := first.Facts.Stream
	want.Cwd, want.Project = after, "store"
	kit.Equal(t, "rewritten", b.decide(again).Facts.Stream, want)
}
