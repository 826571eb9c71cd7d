package tail

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

const filedID = "00000000-0000-4000-8000-0000000000"

// Transcripts that a user moved below a root are delivered wherever they lie, with their agents.
func TestFiledAway(t *testing.T) {
	w := newWorld(t)
	here := []string{
		"p/" + filedID + "01.jsonl", filedID + "02.jsonl", "p/p/" + filedID + "03.jsonl",
		"archive/p/" + filedID + "04.jsonl", "archive/p/" + filedID + "04/subagents/agent-1.jsonl",
		"archive/2026/web.app/" + filedID + "05.jsonl", "p/" + filedID + "01/" + filedID + "06.jsonl",
		"archive/p/agent-2.jsonl", "p/old.jsonl/" + filedID + "07 2.jsonl", "agent-3.jsonl",
		"p/" + filedID + "01/subagents/workflows/run/agent-4.jsonl",
	}
	for _, rel := range here {
		w.write(rel, lines(rel, 3, 100))
	}
	w.start()
	w.present(here...)
	for _, f := range w.tail.Files() {
		want := filepath.Dir(f.File.Path)
		if i := strings.Index(want, string(filepath.Separator)+"subagents"); i >= 0 {
			want = filepath.Dir(want[:i])
		}
		kit.Equal(t, f.File.Path+" lies in the project", f.File.ProjectFolder(), want)
	}
	w.add("archive/p/"+filedID+"04.jsonl", lines("more", 3, 100))
	w.present(here...)
	w.main("archive/p/" + filedID + "04.jsonl")
	left := w.tail.Stats().Stray
	kit.Check(t, len(left) <= 0, "stray: %v", left)
	known := map[string]File{}
	for _, f := range w.tail.Files() {
		f.File.ID, f.File.Copy, f.File.Stat = 0, 0, Stat{}
		known[f.File.Path] = f.File
	}
	Walk(w.root, func(f File) {
		f.Stat = (Stat{})
		kit.Check(t, f == known[f.Path], "walked: %+v, followed: %+v", f, known[f.Path])
		delete(known, f.Path)
	}, func(dir string, err error) { t.Errorf("%s: %v", dir, err) })
	kit.Check(t, len(known) <= 0, "not walked: %v", known)
}

// A *.jsonl that is no transcript by its place and name is named, until it is gone.
func TestStray(t *testing.T) {
	w := newWorld(t)
	w.write("p/a.jsonl", lines("a", 3, 100))
	quiet := []string{
		"p/a/subagents/workflows/run/journal.jsonl", "p/a/tool-results/x.jsonl", "p/.hidden.jsonl", "p/memory/note.md",
		"p/empty/empty.jsonl", ".git/x.jsonl",
	}
	stray := []string{
		"history.jsonl", "p/a/notes.jsonl", "p/b.JSONL", "p/a/subagents/notes.jsonl", "archive/p/notes.jsonl",
		"1/2/3/4/5/6/7/8/9/10/11/12/x.jsonl",
	}
	for _, rel := range slices.Concat(quiet, stray) {
		w.write(rel, lines(rel, 1, 10))
	}
	w.write("p/empty/empty.jsonl", "")
	w.write("1/2/3/4/5/6/7/8/9/10/11/12/13/"+filedID+"01.jsonl", "{}\n")
	w.start()
	w.followed("p/a.jsonl")
	check := func(want []string) {
		t.Helper()
		var rel []string
		for _, path := range w.tail.Stats().Stray {
			r := kit.Try(filepath.Rel(w.root, path)).Must(w.t)
			rel = append(rel, filepath.ToSlash(r))
		}
		want = slices.Sorted(slices.Values(want))
		if slices.Sort(rel); !slices.Equal(rel, want) {
			t.Errorf("stray:\n%q\nwant\n%q", rel, want)
		}
	}
	check(stray)
	deep := w.tail.Stats().NotFollowed
	kit.Check(t, len(deep) == 1 && strings.Contains(deep[0], whyDeep), "too deep: %q", deep)
	w.sync() // the folders look as they did
	check(stray)
	w.rename("p/a/notes.jsonl", "q/notes.jsonl")
	w.followed("p/a.jsonl", "q/notes.jsonl")
	check(slices.Delete(stray, 1, 2))
}

// present fails the test unless these are the files that are followed, and everything in them was delivered.
func (w *world) present(rels ...string) {
	w.t.Helper()
	w.sync()
	var have []string
	for _, f := range w.tail.Present() {
		rel := kit.Try(filepath.Rel(w.root, f.File.Path)).Must(w.t)
		if have = append(have, filepath.ToSlash(rel)); f.Cursor.Offset != f.File.Stat.Size {
			w.t.Errorf("%s is read up to %d of %d", rel, f.Cursor.Offset, f.File.Stat.Size)
		}
	}
	slices.Sort(have)
	kit.Equal(w.t, "followed", have, slices.Sorted(slices.Values(rels)))
}
