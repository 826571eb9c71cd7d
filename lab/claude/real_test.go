//go:build unix

package claude_test

import (
	"bytes"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// TestRealClaude lives the story with ccship in each version, and demands after every step that the server has all
// of it, to the byte, and that ccship has left Claude Code's files alone.
func TestRealClaude(t *testing.T) {
	kit.OnlyInLab(t)
	for _, version := range allVersions() {
		t.Run(version, func(t *testing.T) { shipStory(t, version) })
	}
}

func shipStory(t *testing.T, version string) {
	program := installed(t, version)
	api := newStub(t, scripts()...)
	h := newHome(t, program, api)
	h.version = version
	w := newWorld(h)
	w.start()
	s := &story{home: h, w: w}
	for _, step := range steps() {
		ok := t.Run(step.name, func(t *testing.T) {
			defer w.lend(t)()
			step.tell(s)
			w.settled()
		})
		if !ok {
			t.FailNow() // the steps stand on each other
		}
	}
	w.daemon.MustStop(w.t)
	counts, strange := api.seen()
	t.Logf("requests to the model: %v", counts)
	kit.Check(t, counts[compaction] >= 2 && len(strange) <= 0, "%d compactions, unknown requests %q",
		counts[compaction], strange)
}

// lend has a step's failures reported to the step's own test until the returned function is called.
func (w *world) lend(t *testing.T) func() {
	before := w.t
	w.t = t
	return func() { w.t = before }
}

// settled demands, while no Claude Code runs, that the server is equal to the disk and that finding this out changed
// nothing below Claude Code's folder: no file, no folder, no time.
func (w *world) settled() {
	w.t.Helper()
	own := []string{w.claudeDir(), filepath.Join(w.dir, ".claude.json")}
	before := inventory(w.t, own...)
	r := w.verify()
	files, lines := w.equal()
	kit.Check(w.t, r.Files == files && r.Lines == lines && r.Dead+r.Withheld+r.Excluded+r.Oversize+r.Waiting == 0,
		"verify says %+v; on disk are %d files with %d lines", r, files, lines)
	eventually(w.t, "no file of Claude Code's is open", 2*time.Second, func() bool {
		return len(openBelow(w.daemon.Cmd.Process.Pid, w.claudeDir())) == 0
	})
	if diff := changes(before, inventory(w.t, own...)); diff != nil {
		w.t.Errorf("with no Claude Code running, below its folder is\n%s", strings.Join(diff, "\n"))
	}
	if !w.t.Failed() {
		w.t.Logf("%d files, %d lines on the server, nothing missing", files, lines)
	}
}

// equal demands that the server has each transcript to the last byte, and no other stream. It returns how many
// transcripts and lines are on disk.
func (w *world) equal() (files int, lines int64) {
	w.t.Helper()
	onDisk := transcripts(w.t, w.projects())
	for name, path := range onDisk {
		want := read(w.t, path)
		lines += int64(bytes.Count(want, []byte("\n")))
		code, got := w.get("/api/sessions/" + url.PathEscape(name) + "/raw")
		if code != http.StatusOK {
			w.t.Errorf("%s: the server answers %d: %.200s", name, code, got)
		} else if !bytes.Equal(got, want) {
			w.t.Errorf("%s: %s", name, firstDifference(got, want))
		}
	}
	streams := w.streams()
	slices.Sort(streams)
	if names := slices.Sorted(maps.Keys(onDisk)); !slices.Equal(names, streams) {
		w.t.Errorf("the server has the streams\n%s\nand on disk are\n%s", strings.Join(streams, "\n"), strings.Join(names, "\n"))
	}
	return len(onDisk), lines
}
