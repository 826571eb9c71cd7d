package library

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/e2e/kit"
)

// grow appends to a file below the projects folder that was last changed some time ago.
func (r *room) grow(path, text string, ago time.Duration) {
	r.t.Helper()
	r.write(path, r.text(path)+text, ago)
}

// during calls do once, when the first request ends in suffix.
func (r *room) during(suffix string, do func()) {
	done := false
	r.fakeServer.asked = func(path string) {
		if !done && strings.HasSuffix(path, suffix) {
			done = true
			do()
		}
	}
}

// TestResumeMeanwhile: what the session writes on this disk while its copy is downloaded is never replaced.
func TestResumeMeanwhile(t *testing.T) {
	dir, project := folder(t, "shop")
	main, agent := project+"/"+one+".jsonl", project+"/"+one+"/subagents/agent-a.jsonl"
	mine := line(dir, "mine")
	for name, c := range map[string]struct {
		before, path, text string // of one file here before, "": none; what comes to which file meanwhile
		ago                time.Duration
		code               string
	}{
		"the session goes on":                 {line(dir, "a"), main, mine, time.Hour, CodeLongerHere},
		"it begins":                           {"", main, line(dir, "a") + mine, time.Hour, CodeLongerHere},
		"it is written to, as the server has": {line(dir, "a"), main, line(dir, "b"), 0, CodeLive},
		"in another project":                  {line(dir, "a"), "-other/" + one + ".jsonl", mine, time.Hour, CodeLongerHere},
		"an agent goes on":                    {"", agent, line(dir, "x") + mine, time.Hour, CodeLongerHere},
	} {
		for _, forced := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				sent := line("/old", "a") + line("/old", "b")
				r := newRoom(t,
					&stored{id: one, machine: abroad, cwd: "/old", path: "-old/" + one + ".jsonl", text: sent, blobs: [][2]string{{"tool-results/t", "theirs"}}},
					&stored{id: one + "/agent-a", machine: abroad, parent: one, path: "-old/" + one + "/subagents/agent-a.jsonl", text: line("/old", "x")})
				if c.before != "" {
					r.write(c.path, c.before, time.Hour)
				}
				r.during("/blobs", func() { r.grow(c.path, c.text, c.ago) })
				done, err := r.Resume(t.Context(), ResumeRequest{Session: one, Folder: dir, Force: forced})
				if want := c.before + c.text; !forced {
					if !remote.Is(err, c.code) || r.text(c.path) != want || len(r.files()) != 1 {
						t.Errorf("%v, left %v: %s", err, r.files(), r.text(c.path))
					}
					return
				}
				kit.Require(t, err == nil && r.text(main) == line(dir, "a")+line(dir, "b"), "%+v, %v", done, err)
				kit.Check(t, r.holds(mine) || !strings.Contains(c.text, mine), "the line is lost: %v", r.files())
			})
		}
	}
}

// holds reports whether a line is in any file of the home.
func (r *room) holds(line string) bool {
	return slices.ContainsFunc(r.files(), func(name string) bool { return strings.Contains(r.text(name), line) })
}

// TestResumeAtTheLastMoment: a line that comes after the last comparison stays in a file that is named.
func TestResumeAtTheLastMoment(t *testing.T) {
	dir, project := folder(t, "shop")
	r := newRoom(t, &stored{id: one, machine: abroad, cwd: "/old", path: "-old/" + one + ".jsonl", text: line("/old", "a") + line("/old", "b")})
	main := project + "/" + one + ".jsonl"
	r.write(main, line(dir, "a"), time.Hour)
	found, err := r.Find(t.Context(), one)
	work := &resumption{Library: r.Library, request: ResumeRequest{Folder: dir}, session: found.Stored[0], found: found}
	kit.Must(t, errors.Join(err, work.choosePlace(), work.fetch(t.Context()), work.compareAgain(t.Context())))
	r.grow(main, line(dir, "mine"), time.Hour)
	one, err := work.put(t.Context(), &work.staged[0])
	aside, _ := os.ReadFile(one.Aside)
	kit.Check(t, err == nil && string(aside) == line(dir, "a")+line(dir, "mine") && r.text(main) == line(dir, "a")+line(dir, "b"),
		"%+v, %v: %q", one, err, aside)
}

// TestResumeKeepsAnAttachment that was written here meanwhile.
func TestResumeKeepsAnAttachment(t *testing.T) {
	dir, project := folder(t, "shop")
	r := newRoom(t, &stored{id: one, machine: abroad, cwd: "/old", path: "-old/" + one + ".jsonl", text: line("/old", "a"),
		blobs: [][2]string{{"tool-results/t", "theirs"}, {"tool-results/u", "theirs"}}})
	name := project + "/" + one + "/tool-results/t"
	found, err := r.Find(t.Context(), one)
	work := &resumption{Library: r.Library, request: ResumeRequest{Folder: dir}, session: found.Stored[0], found: found}
	kit.Must(t, errors.Join(err, work.choosePlace(), work.fetch(t.Context())))
	r.write(name, "mine", time.Hour)
	done, err := work.keep(t.Context())
	kit.Check(t, err == nil && r.text(name) == "mine" && len(done.Files) == 2 && len(r.files()) == 3,
		"%+v, %v: %v", done, err, r.files())
}

// TestRestoreMeanwhile: a session that goes on during the download is live.
func TestRestoreMeanwhile(t *testing.T) {
	r := newRoom(t, &stored{id: one, machine: here, path: "-p/" + one + ".jsonl", text: prompt("a") + prompt("b")})
	r.write("-p/"+one+".jsonl", prompt("a"), time.Hour)
	r.during("/raw", func() { r.grow("-p/"+one+".jsonl", prompt("mine"), 0) })
	_, err := r.Restore(t.Context(), RestoreRequest{Session: one})
	kit.Check(t, remote.Is(err, CodeLive), "%v", err)
	kit.Equal(t, "the file", r.text("-p/"+one+".jsonl"), prompt("a")+prompt("mine"))
	left, _ := filepath.Glob(filepath.Join(r.Roots[0], "-p", "*before*"))
	kit.Check(t, len(left) == 0, "%v", left)
}
