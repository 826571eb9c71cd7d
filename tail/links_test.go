//go:build unix

package tail

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"golang.org/x/sys/unix"
)

// outside is a folder next to the root.
func (w *world) outside(rel string) string { return filepath.Join(w.root+"-outside", rel) }

func (w *world) writeOutside(rel, content string) {
	w.t.Helper()
	w.must(os.MkdirAll(filepath.Dir(w.outside(rel)), 0o700))
	w.must(os.WriteFile(w.outside(rel), []byte(content), 0o600))
}

func (w *world) link(target, rel string) {
	w.t.Helper()
	w.mkdir(filepath.Dir(rel))
	w.must(os.Symlink(target, w.path(rel)))
}

func TestLinksAreFollowedOnce(t *testing.T) {
	w := newWorld(t)
	body := lines("a", 3, 100)
	w.write("p/own.jsonl", body)
	w.writeOutside("project/far.jsonl", body)
	w.writeOutside("project/s/subagents/agent-1.jsonl", body)
	w.writeOutside("single.jsonl", body)
	w.link(w.outside("project"), "linked")
	w.link(w.outside("project"), "twice")
	w.link(w.outside("single.jsonl"), "p/single.jsonl")
	w.link(w.outside("single.jsonl"), "q/single.jsonl")
	w.link(w.path("p"), "a-first-by-name")
	w.link(w.path("p/own.jsonl"), "a/other-name.jsonl")
	w.link(w.root, "loop")
	w.link(w.root, "p/loop")
	w.link("itself", "itself")
	w.mkdir("p/s/subagents")
	w.link("..", "p/s/subagents/up")
	w.start()
	w.arrived("linked/s/subagents/agent-1.jsonl", "s/agent-1", 1)
	check := func() {
		t.Helper()
		w.sync()
		w.main("linked/far.jsonl")
		w.main("p/single.jsonl")
		w.main("p/own.jsonl")
		kit.Equal(t, "files are followed", len(w.tail.Files()), 4)
	}
	check()
	all := w.tail.Stats().NotFollowed
	kit.Check(t, len(all) == 1 && strings.Contains(all[0], whyLoop), "not followed: %v", all)
	for _, rel := range []string{"linked/far.jsonl", "p/single.jsonl"} {
		w.add(rel, lines("more", 2, 100))
		w.main(rel)
	}
	check()
	w.stop()
	w.link(w.outside("project"), "earlier-by-name") // what was followed keeps its name
	w.start()
	check()
}

func TestLinkChangesItsTarget(t *testing.T) {
	w := newWorld(t)
	w.writeOutside("one.jsonl", lines("one", 5, 100))
	w.writeOutside("two.jsonl", lines("two", 9, 100))
	w.writeOutside("x/f.jsonl", lines("x", 5, 100))
	w.writeOutside("y/f.jsonl", lines("y", 9, 100))
	w.link(w.outside("one.jsonl"), "p/a.jsonl")
	w.link(w.outside("x"), "folder")
	w.start()
	w.followed("p/a.jsonl", "folder/f.jsonl")
	w.must(os.Remove(w.path("p/a.jsonl")))
	w.link(w.outside("two.jsonl"), "p/a.jsonl")
	w.must(os.Remove(w.path("folder")))
	w.link(w.outside("y"), "folder")
	w.followed("p/a.jsonl", "folder/f.jsonl")
	all := w.tail.Files()
	kit.Check(t, len(all) == 2, "%+v", all)
	w.add("p/a.jsonl", lines("more", 2, 100))
	w.followed("p/a.jsonl", "folder/f.jsonl")
	// At last it leads to a file that is followed already.
	w.must(os.Remove(w.path("p/a.jsonl")))
	w.link(w.path("folder/f.jsonl"), "p/a.jsonl")
	w.followed("folder/f.jsonl")
}

// What a link led to gets a real name below the root, and the other way round: nothing is read twice.
func TestLinkAndTargetChangePlaces(t *testing.T) {
	w := newWorld(t)
	w.writeOutside("project/a.jsonl", lines("a", 5, 100))
	w.link(w.outside("project"), "linked")
	w.start()
	w.followed("linked/a.jsonl")
	w.must(os.Rename(w.outside("project"), w.path("real")))
	w.must(os.Remove(w.path("linked")))
	w.link(w.path("real"), "linked")
	w.followed("real/a.jsonl")
	w.add("linked/a.jsonl", lines("b", 5, 100))
	w.followed("real/a.jsonl")
	w.must(os.Rename(w.path("real"), w.outside("back")))
	w.must(os.Remove(w.path("linked")))
	w.link(w.outside("back"), "linked")
	w.followed("linked/a.jsonl")
	all := w.tail.Files()
	kit.Check(t, len(all) == 1 && all[0].Cursor.Generation == 0, "%+v", all)
}

func TestLinksThatAreNotFollowed(t *testing.T) {
	w := newWorld(t)
	w.write("p/own.jsonl", lines("a", 3, 100))
	w.writeOutside("later.jsonl", lines("later", 3, 100))
	w.must(unix.Mkfifo(w.outside("pipe"), 0o600))
	w.link(w.outside("pipe"), "p/pipe.jsonl")
	w.link("/dev/zero", "p/device.jsonl")
	w.link(w.outside("none"), "p/none.jsonl")
	w.must(unix.Mkfifo(w.path("p/plain-pipe.jsonl"), 0o600))
	want := map[string]string{"p/pipe.jsonl": whyKind, "p/device.jsonl": whyKind, "p/none.jsonl": whyMissing}
	if os.Geteuid() == 0 {
		w.writeOutside("theirs.jsonl", lines("theirs", 3, 100))
		w.must(os.Chown(w.outside("theirs.jsonl"), 65534, 65534))
		w.link(w.outside("theirs.jsonl"), "p/theirs.jsonl")
		w.writeOutside("folder/mine.jsonl", lines("mine", 3, 100))
		w.must(os.Chown(w.outside("folder"), 65534, 65534))
		w.link(w.outside("folder"), "theirs")
		w.writeOutside("shared/theirs.jsonl", lines("theirs", 3, 100))
		w.must(os.Chown(w.outside("shared/theirs.jsonl"), 65534, 65534))
		w.link(w.outside("shared"), "shared")
		want["p/theirs.jsonl"], want["theirs"], want["shared/theirs.jsonl"] = whyForeign, whyForeign, whyForeign
	}
	w.start()
	w.followed("p/own.jsonl")
	all := w.tail.Stats().NotFollowed
	kit.Equal(t, fmt.Sprintf("not followed: %v", all), len(all), len(want))
	for rel, why := range want {
		kit.Has(t, fmt.Sprintf("%s: not said: %v", rel, all), strings.Join(all, "\n"), w.path(rel)+": "+why)
	}
	w.must(os.Rename(w.outside("later.jsonl"), w.outside("none"))) // its folder looks as it did
	w.followed("p/own.jsonl", "p/none.jsonl")
	kit.Equal(t, "not followed", len(w.tail.Stats().NotFollowed), len(want)-1)
}

// A write behind a link arrives by an event, not by the next listing.
func TestLinksAreWatched(t *testing.T) {
	w := newWorld(t)
	w.cfg.ScanAll, w.cfg.ScanActive = 1<<40, 1<<40
	w.writeOutside("single.jsonl", lines("a", 3, 100))
	w.writeOutside("project/far.jsonl", lines("a", 3, 100))
	w.link(w.outside("single.jsonl"), "p/single.jsonl")
	w.link(w.outside("project"), "linked")
	w.startWith("p/single.jsonl")
	w.main("linked/far.jsonl")
	w.sync() // lists again
	if w.tail.Stats().Watch != "events" {
		t.Skip("no events here")
	}
	w.add("p/single.jsonl", lines("b", 3, 100))
	w.add("linked/far.jsonl", lines("b", 3, 100))
	w.main("p/single.jsonl")
	w.main("linked/far.jsonl")
}
