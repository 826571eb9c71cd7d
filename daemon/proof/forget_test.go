package proof

import (
	"path/filepath"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// A session is found right after the daemon's start, too, while the tailer has not loaded what it knows.
func TestTrackedBeforeTheTailerRuns(t *testing.T) {
	db := kit.Try(state.Open(t.Context(), state.Options{Path: filepath.Join(t.TempDir(), "state.db")})).Must(t)
	t.Cleanup(func() { kit.Should(t, db.Close()) })
	file := tail.File{ID: 1, Path: "/r/p/one.jsonl", Root: "/r", Name: "one", Copy: 1}
	kit.Must(t, db.Files.Update(t.Context(), []tail.Tracked{{File: file}}))
	f := &Forgetter{State: db, Files: tail.New(tail.Config{Roots: []tail.Root{{Dir: t.TempDir()}}}, db.Files, nil)}
	got, err := f.tracked(t.Context())
	kit.Check(t, err == nil && len(got) == 1 && got[0].File.Path == file.Path, "%+v, %v; want %s", got, err, file.Path)
}
