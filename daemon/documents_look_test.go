package daemon

import (
	"os"
	"testing"
	"time"
)

// gallery is a daemon that does nothing by itself: its documents are looked at when the test says so.
type gallery struct {
	*world
	d   *Daemon
	cwd string
}

func newGallery(t *testing.T) *gallery {
	t.Helper()
	w, _, cwd := newPaperWorld(t)
	w.write("-p/"+sessionA+".jsonl", records(cwd, 0, 3))
	w.start() // a first daemon reads the transcript
	w.sync()
	w.stop()
	d, err := open(t.Context(), w.cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.db.Close() })
	return &gallery{w, d, cwd}
}

// look looks at all documents once, and answers one of them.
func (g *gallery) look(name string, edits ...edit) paper {
	g.t.Helper()
	x := g.d.documents
	x.work.Lock()
	defer x.work.Unlock()
	s, err := g.d.siteOf(g.t.Context(), sessionA)
	if err != nil {
		g.t.Fatal(err)
	}
	x.lookAll(g.t.Context(), s, edits)
	for _, p := range x.papers(sessionA, false) {
		if p.Path == name {
			return p
		}
	}
	g.t.Fatalf("there is no document %s", name)
	return paper{}
}

func (g *gallery) linkNow(name string) {
	g.t.Helper()
	if err := g.d.documents.link(g.t.Context(), linkage{session: sessionA, path: name, by: byUser, line: -1}); err != nil {
		g.t.Fatal(err)
	}
}

// rows are how many batches wait.
func (g *gallery) rows() int64 { return g.d.db.Usage().Batches }

// TestLooks looks at a document, and lets an editor, a formatter and a clock do what they do between two looks.
func TestLooks(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	path := saveFile(t, g.cwd, "a.md", "one")
	g.linkNow("a.md")
	version := func(what string, p paper, want int64, rows int64) {
		t.Helper()
		if p.Version != want || g.rows() != rows {
			t.Errorf("%s: version %d and %d rows, want %d and %d", what, p.Version, g.rows(), want, rows)
		}
	}
	version("as it is", g.look("a.md"), 1, 1)
	saveFile(t, g.cwd, "a.md", "two")
	version("it may still be written", g.look("a.md"), 1, 1)
	saveFile(t, g.cwd, "a.md", "three")
	version("it is still written", g.look("a.md"), 1, 1)
	version("it rests", g.look("a.md"), 2, 2)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if p := g.look("a.md"); p.Deleted {
		t.Error("a file that is away for one look is deleted")
	}
	saveFile(t, g.cwd, "a.md", "three")
	g.look("a.md")
	version("another file with the same content", g.look("a.md"), 2, 2)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	g.look("a.md")
	if p := g.look("a.md"); !p.Deleted || p.SHA256 != "" || p.Size != 0 {
		t.Errorf("deleted: %+v", p)
	}
	version("deleted once", g.look("a.md"), 3, 3)
	saveFile(t, g.cwd, "a.md", "three")
	g.look("a.md")
	version("there again, the same", g.look("a.md"), 4, 4)
	saveFile(t, g.cwd, "a.md", "by Claude")
	if p := g.look("a.md", edit{path, 7}); p.By != byClaude || p.Version != 5 {
		t.Errorf("an edit of Claude's: %+v", p)
	}
	version("nothing more", g.look("a.md", edit{path, 7}), 5, 5)
}

// TestLooksUnderOneStamp changes a document so that its directory entry stays as it was, as a clock with long ticks
// does: the change is found all the same.
func TestLooksUnderOneStamp(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	saveFile(t, g.cwd, "a.md", "one")
	g.linkNow("a.md")
	x := g.d.documents
	p := g.look("a.md")
	if !p.doubtful {
		t.Fatal("a file written just now is not doubted")
	}
	path := saveFile(t, g.cwd, "a.md", "two")
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	g.look("a.md")
	p = g.look("a.md")
	if p.Version != 2 {
		t.Fatalf("version %d", p.Version)
	}
	p.SHA256 = "what was there within the same tick"
	p.doubtful = true
	x.put(p, false)
	g.until("the clock has ticked", func() bool { return g.look("a.md").Version == 3 })
	if p = g.look("a.md"); p.doubtful || p.Version != 3 {
		t.Errorf("it is doubted for ever: %+v", p)
	}
	p.SHA256 = "what cannot be known any more"
	x.put(p, false)
	if p = g.look("a.md"); p.Version != 3 {
		t.Error("a file whose entry proves that it is the same is read")
	}
}

// TestLooksUnrest takes a file that is written all the time as it is once in a while.
func TestLooksUnrest(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	saveFile(t, g.cwd, "a.log", "")
	g.linkNow("a.log")
	text := ""
	for range 5 {
		text += "line\n"
		saveFile(t, g.cwd, "a.log", text)
		if p := g.look("a.log"); p.Version != 1 || p.since.IsZero() {
			t.Fatalf("it is read while it is written: %+v", p)
		}
	}
	p := g.look("a.log")
	if p.Version != 2 {
		t.Fatalf("version %d, want 2", p.Version)
	}
	saveFile(t, g.cwd, "a.log", "x")
	p = g.look("a.log")
	p.since = time.Now().Add(-unrest)
	g.d.documents.put(p, false)
	saveFile(t, g.cwd, "a.log", "xy")
	if p = g.look("a.log"); p.Version != 3 {
		t.Errorf("version %d, want 3", p.Version)
	}
}

// TestLinkOtherCase takes one file by two spellings, where the file system does, as one document.
func TestLinkOtherCase(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	saveFile(t, g.cwd, "docs/Spec.md", "x")
	g.linkNow("docs/Spec.md")
	if _, err := os.Stat(g.cwd + "/DOCS/spec.MD"); err != nil {
		t.Skip("names differ by case here")
	}
	g.linkNow("DOCS/spec.MD")
	if n := len(g.d.documents.papers(sessionA, true)); n != 1 {
		t.Errorf("%d documents", n)
	}
}

// TestMostLinked refuses more documents than a session can have.
func TestMostLinked(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	x := g.d.documents
	for n := range mostLinked {
		p := paper{}
		p.Session, p.Path, p.Linked = sessionA, string(rune('a'+n)), true
		x.put(p, true)
	}
	saveFile(t, g.cwd, "one-more.md", "x")
	if err := x.link(t.Context(), linkage{session: sessionA, path: "one-more.md", by: byUser, line: -1}); err == nil {
		t.Error("it is linked")
	}
}

// TestNothingLinked has no reason to wake up when nothing is linked.
func TestNothingLinked(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	x := g.d.documents
	if _, any := x.rest(time.Now()); any {
		t.Error("something is looked at though nothing was ever linked")
	}
	saveFile(t, g.cwd, "a.md", "x")
	g.linkNow("a.md")
	if _, any := x.rest(time.Now()); !any {
		t.Error("what is linked is not looked at")
	}
	if err := x.unlink(t.Context(), linkage{session: sessionA, path: "a.md", by: byUser, line: -1}); err != nil {
		t.Fatal(err)
	}
	if _, any := x.rest(time.Now()); any {
		t.Error("what is not linked any more is looked at")
	}
}

// TestForgetsAtOnce has nothing of a session's documents left, in memory and on disk.
func TestForgetsAtOnce(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	x := g.d.documents
	saveFile(t, g.cwd, "a.md", "x")
	g.linkNow("a.md")
	if err := x.forget(t.Context(), sessionA); err != nil {
		t.Fatal(err)
	}
	if len(x.papers(sessionA, false)) > 0 {
		t.Error("documents are left")
	}
	again := newDocuments(g.d.db, g.d.introductions, g.d.log)
	if err := again.load(t.Context()); err != nil || len(again.shelves) > 0 {
		t.Errorf("%d sessions are left on disk: %v", len(again.shelves), err)
	}
}
