package route

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
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
	kit.Require(b.t, d.Verdict == Take && d.Facts.Stream.Extended, "a prompt history: %+v", d)
	kit.Require(b.t, b.router.History.Excludes(&c.File, promptIn(dir)) && !b.router.History.Excludes(&c.File, promptIn(b.t.TempDir())),
		"the wrong lines are left out")
	if persist {
		kit.Must(b.t, b.router.History.Persist(b.t.Context()))
	}
	d.Facts.Excluded = 1
	b.commit(c, d)
	return dir
}

func (b *bench) readmitted(what string, want ...tail.FileID) {
	b.t.Helper()
	got := b.router.History.Readmitted()
	kit.Check(b.t, slices.Equal(got, want), "%s: histories %v are delivered again, want %v", what, got, want)
}

func TestHistoryReadmittedOverRestart(t *testing.T) {
	b := newBench(t)
	dir := b.excludedHistory(true)
	b.load()
	b.readmitted("while the project is excluded")
	kit.Must(t, os.RemoveAll(filepath.Join(dir, ".codetracker")))
	b.load()
	b.readmitted("after the exclusion", 7)
	b.readmitted("for the second time")
	kit.Must(t, b.router.History.Restarted(t.Context(), 7))
	kept := b.router.History.persisted.Get()
	kit.Check(t, len(kept) == 0, "after the history was delivered again, %v is kept", kept)
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
	kit.Must(t, b.db.PutMeta(t.Context(), "omitted", []byte("{")))
	b.load()
	b.readmitted("when the list cannot be read", 7)
}

func TestHistoryForgottenSession(t *testing.T) {
	b := newBench(t)
	kit.Must(t, b.router.Tombstones.Put(t.Context(), Tombstone{Session: sessionA}))
	line := []byte(`{"display":"hello","project":"` + filepath.ToSlash(t.TempDir()) + `","sessionId":"` + sessionA + `"}`)
	kit.Check(t, b.router.History.Excludes(&tail.File{ID: 7}, line), "a forgotten session's prompt is delivered")
	b.readmitted("a forgotten session's project is not excluded")
}

func TestHistoryStaleProjectsAreRemoved(t *testing.T) {
	b := newBench(t)
	kept := kit.Try(state.LoadPersisted[excludedProjects](t.Context(), b.db, "omitted")).Must(t)
	kit.Must(t, kept.Change(t.Context(), func(excludedProjects) (excludedProjects, bool) {
		return excludedProjects{9: {"/gone": true}}, true
	}))
	b.load()
	got := b.router.History.persisted.Get()
	kit.Check(t, len(got) == 0, "%v is kept of a file that is not known", got)
}

// TestHistoryOfExcludedSession: a prompt of a session that began in an excluded project stays here wherever it was typed,
// whichever file is read first, after a restart and without its transcript; other sessions' prompts go. Once the project
// is included, the history is delivered again.
func TestHistoryOfExcludedSession(t *testing.T) {
	const out = `{"conversation_tracking":{"enabled":false}}`
	typed := func(session, dir string) []byte {
		return []byte(`{"display":"deploy","project":"` + filepath.ToSlash(dir) + `","sessionId":"` + session + `"}`)
	}
	elsewhere, root := t.TempDir(), t.TempDir()
	write := func(t *testing.T, root, text string) string {
		t.Helper()
		path := filepath.Join(root, "-secret", sessionA+".jsonl")
		kit.WriteFile(t, path, text)
		return path
	}
	for name, know := range map[string]func(t *testing.T, b *bench, secret string) (root string){
		"transcript on disk": func(t *testing.T, _ *bench, secret string) string {
			write(t, root, `{"type":"mode"}`+"\n"+lineIn(secret))
			return root
		},
		"transcript read": func(_ *testing.T, b *bench, secret string) string {
			b.decide(chunk(1, lineIn(secret)))
			return "/claude/projects"
		},
		"excluded later, restart": func(t *testing.T, b *bench, secret string) string {
			config := filepath.Join(secret, ".codetracker")
			kit.Must(t, os.Rename(config, config+".away"))
			c := chunk(1, lineIn(secret))
			b.commit(c, b.decide(c))
			kit.Must(t, os.Rename(config+".away", config))
			b.load()
			return "/claude/projects"
		},
		"only prompts": func(t *testing.T, b *bench, secret string) string {
			kit.Check(t, b.router.History.Excludes(&tail.File{ID: 7}, typed(sessionA, secret)),
				"a prompt in the project is delivered")
			return t.TempDir()
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, secret := newBench(t), projectFolder(t, out)
			f := &tail.File{ID: 7, Kind: tail.History, Root: know(t, b, secret)}
			for _, session := range []string{sessionA, "../" + sessionA, "other", ""} {
				got, want := b.router.History.Excludes(f, typed(session, elsewhere)), session == sessionA
				kit.Check(t, got == want, "a prompt of session %q typed elsewhere: left out %v, want %v", session, got, want)
			}
			b.readmitted("while the project is excluded")
			kit.Must(t, os.RemoveAll(filepath.Join(secret, ".codetracker")))
			b.readmitted("after the exclusion", 7)
			kit.Check(t, !b.router.History.Excludes(f, typed(sessionA, elsewhere)),
				"a prompt of a session that is included again is left out")
		})
	}
}
