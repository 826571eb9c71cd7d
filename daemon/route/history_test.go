package route

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

func promptIn(dir string) []byte {
	return []byte(`{"display":"hello","project":"` + filepath.ToSlash(dir) + `"}`)
}

// excludedHistory makes a history that lacks lines of an excluded project, and returns that project's folder.
func (b *bench) excludedHistory(persist bool) string {
	b.t.Helper()
	dir := projectFolder(b.t, `{"conversation_tracking":{"enabled":false}}`)
	c := chunk(7, string(promptIn(dir))+"\n")
	c.File.Kind = tail.History
	d := b.decide(c)
	if d.Verdict != Take || !d.Facts.Stream.Extended {
		b.t.Fatalf("a prompt history: %+v", d)
	}
	if !b.router.History.Excludes(7, promptIn(dir)) || b.router.History.Excludes(7, promptIn(b.t.TempDir())) {
		b.t.Fatal("the wrong lines are left out")
	}
	if persist {
		if err := b.router.History.Persist(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
	}
	d.Facts.Excluded = 1
	b.commit(c, d)
	return dir
}

func (b *bench) readmitted(what string, want ...tail.FileID) {
	b.t.Helper()
	if got := b.router.History.Readmitted(); !slices.Equal(got, want) {
		b.t.Errorf("%s: histories %v are delivered again, want %v", what, got, want)
	}
}

func TestHistoryReadmittedOverRestart(t *testing.T) {
	b := newBench(t)
	dir := b.excludedHistory(true)
	b.load()
	b.readmitted("while the project is excluded")
	if err := os.RemoveAll(filepath.Join(dir, ".codetracker")); err != nil {
		t.Fatal(err)
	}
	b.load()
	b.readmitted("after the exclusion", 7)
	b.readmitted("for the second time")
	if err := b.router.History.Restarted(t.Context(), 7); err != nil {
		t.Fatal(err)
	}
	if kept := b.router.History.persisted.Get(); len(kept) > 0 {
		t.Errorf("after the history was delivered again, %v is kept", kept)
	}
}

func TestHistoryOfUnknownExclusions(t *testing.T) {
	b := newBench(t)
	b.excludedHistory(false)
	b.load()
	b.readmitted("when it is not known what was left out", 7)
}

func TestHistoryUnreadable(t *testing.T) {
	b := newBench(t)
	b.excludedHistory(true)
	if err := b.db.PutMeta(t.Context(), "omitted", []byte("{")); err != nil {
		t.Fatal(err)
	}
	b.load()
	b.readmitted("when the list cannot be read", 7)
}

func TestHistoryForgottenSession(t *testing.T) {
	b := newBench(t)
	if err := b.router.Tombstones.Put(t.Context(), Tombstone{Session: sessionA}); err != nil {
		t.Fatal(err)
	}
	line := []byte(`{"display":"hello","project":"` + filepath.ToSlash(t.TempDir()) + `","sessionId":"` + sessionA + `"}`)
	if !b.router.History.Excludes(7, line) {
		t.Error("a forgotten session's prompt is delivered")
	}
	b.readmitted("a forgotten session's project is not excluded")
}

func TestHistoryStaleProjectsAreRemoved(t *testing.T) {
	b := newBench(t)
	kept, err := state.LoadPersisted[excludedProjects](t.Context(), b.db, "omitted")
	if err != nil {
		t.Fatal(err)
	}
	err = kept.Change(t.Context(), func(excludedProjects) (excludedProjects, bool) {
		return excludedProjects{9: {"/gone": true}}, true
	})
	if err != nil {
		t.Fatal(err)
	}
	b.load()
	if got := b.router.History.persisted.Get(); len(got) > 0 {
		t.Errorf("%v is kept of a file that is not known", got)
	}
}
