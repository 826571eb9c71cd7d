package library

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/e2e/kit"
)

// line is a record that was made in a working directory.
func line(cwd, text string) string {
	return fmt.Sprintf(`{"type":"user","cwd":%q,"message":{"role":"user","content":%q},"uuid":"u"}`+"\n", cwd, text)
}

// folder makes a working directory and returns it, with the name of its project folder.
func folder(t *testing.T, name string) (dir, project string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	dir = filepath.Join(dir, name)
	kit.Must(t, errors.Join(err, os.MkdirAll(dir, 0o700)))
	project, ok := folderName(dir)
	kit.Require(t, ok, "%v", dir)
	return dir, project
}

// text is what a file below the projects folder holds, "" if it is not there.
func (r *room) text(name string) string {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.Roots[0], filepath.FromSlash(name)))
	kit.Require(r.t, err == nil || errors.Is(err, os.ErrNotExist), "%v", err)
	return string(text)
}

// TestResumeHere brings a session, its agents and attachments, and maps what is structural only.
func TestResumeHere(t *testing.T) {
	for old, sub := range map[string]string{"/home/kim/shop": "/api", `C:\Users\kim\shop`: `\api`} {
		t.Run(old, func(t *testing.T) {
			dir, project := folder(t, "shop")
			said := "look at " + old + sub + " please"
			theirs := "-elsewhere/" + one
			x := &stored{id: one, machine: abroad, cwd: old, path: theirs + ".jsonl",
				text:  line(old, said) + "not json\n" + line(old+sub, "b [github:ow53kz6kmzbpdnif......]") + line("/tmp", "c") + `{"cwd":"cut`,
				blobs: [][2]string{{"tool-results/t1.txt", "early"}, {"tool-results/t1.txt", "late"}, {"subagents/agent-a.meta.json", "{}"}}}
			a := &stored{id: one + "/agent-a", machine: abroad, parent: one, path: theirs + "/subagents/agent-a.jsonl", text: line(old, "task")}
			r := newRoom(t, x, a)
			done, err := r.Resume(t.Context(), ResumeRequest{Session: one[:6], Folder: dir})
			kit.Require(t, err == nil && done.Folder == dir && done.From == old && done.Masked == 1 && len(done.Files) == 4,
				"%+v, %v", done, err)
			below := dir + strings.ReplaceAll(sub, `\`, "/")
			for name, want := range map[string]string{
				project + "/" + one + ".jsonl":                       line(dir, said) + "not json\n" + line(below, "b [github:ow53kz6kmzbpdnif......]") + line("/tmp", "c") + `{"cwd":"cut`,
				project + "/" + one + "/subagents/agent-a.jsonl":     line(dir, "task"),
				project + "/" + one + "/subagents/agent-a.meta.json": "{}",
				project + "/" + one + "/tool-results/t1.txt":         "late",
			} {
				got := r.text(name)
				kit.Check(t, got == want, "%s:\n%s\nwant\n%s", name, got, want)
			}
			before := r.files()
			again, err := r.Resume(t.Context(), ResumeRequest{Session: one, Folder: dir})
			kit.Check(t, err == nil && again.Files[0].Same && again.Files[1].Same && slices.Equal(r.files(), before),
				"again: %+v, %v; %v", again, err, r.files())
		})
	}
}

// TestResumeOthers: another user's session becomes Claude's context only if that user is named.
func TestResumeOthers(t *testing.T) {
	dir, project := folder(t, "shop")
	x := &stored{id: one, machine: abroad, user: "ann", cwd: dir, path: "-theirs/" + one + ".jsonl", text: line(dir, "a")}
	r := newRoom(t, x)
	_, resumed := r.Resume(t.Context(), ResumeRequest{Session: one})
	_, restored := r.Restore(t.Context(), RestoreRequest{Session: one, Machine: abroad})
	for what, err := range map[string]error{"resume": resumed, "restore": restored} {
		kit.Check(t, remote.Is(err, control.CodeUsage) && strings.Contains(err.Error(), "is ann's, not yours"),
			"%s: %v", what, err)
	}
	kit.Check(t, len(r.files()) == 0, "files were written: %v", r.files())
	_, err := r.Resume(t.Context(), ResumeRequest{Session: one, User: "ann"})
	kit.Check(t, err == nil && r.text(project+"/"+one+".jsonl") == x.text, "with the user: %v", err)
}

// TestResumeInItsFolder needs no --here where the session's folder exists, and says what to do where it does not.
func TestResumeInItsFolder(t *testing.T) {
	dir, project := folder(t, "shop")
	x := &stored{id: one, machine: abroad, cwd: dir, path: "-theirs/" + one + ".jsonl", text: line(dir, "a")}
	r := newRoom(t, x)
	done, err := r.Resume(t.Context(), ResumeRequest{Session: one})
	kit.Check(t, err == nil && done.Folder == dir && r.text(project+"/"+one+".jsonl") == x.text, "%+v, %v", done, err)
	x.cwd = filepath.Join(dir, "gone")
	_, err = r.Resume(t.Context(), ResumeRequest{Session: one})
	kit.Check(t, remote.Is(err, CodeNoFolder), "a folder that is not there: %v", err)
	_, err = r.Resume(t.Context(), ResumeRequest{Session: "1"})
	kit.Check(t, remote.Is(err, control.CodeUsage), "a short id: %v", err)
}

// TestResumeWorktree: a session that ended in a worktree goes on in the folder that is named.
func TestResumeWorktree(t *testing.T) {
	dir, project := folder(t, "shop")
	tree := "/home/kim/shop/.claude/worktrees/fix"
	name, _ := folderName(tree)
	x := &stored{id: one, machine: abroad, cwd: "/home/kim/shop", path: name + "/" + one + ".jsonl",
		text: line("/home/kim/shop", "a") + line(tree, "b") + line(tree+"/api", "c")}
	r := newRoom(t, x)
	done, err := r.Resume(t.Context(), ResumeRequest{Session: one, Folder: dir})
	want := line(dir, "a") + line(dir, "b") + line(dir+"/api", "c")
	got := r.text(project + "/" + one + ".jsonl")
	kit.Check(t, err == nil && done.From == tree && got == want, "%+v, %v\n%s", done, err, got)
}

// TestResumeLastWritten brings the copy that was written last, unless another is named.
func TestResumeLastWritten(t *testing.T) {
	dir, project := folder(t, "shop")
	copyOf := func(machine string, ago time.Duration, text string) *stored {
		return &stored{id: one, machine: machine, at: time.Now().Add(-ago), path: "-p/" + one + ".jsonl", text: line("/x", text)}
	}
	r := newRoom(t, copyOf(here, 3*time.Hour, "here"), copyOf(abroad, time.Hour, "late"), copyOf("0c", 2*time.Hour, "early"))
	for machine, want := range map[string]string{"": "late", "0c": "early"} {
		kit.Try(r.Resume(t.Context(), ResumeRequest{Session: one, Folder: dir, Machine: machine, Force: true})).Must(t)
		kit.Has(t, fmt.Sprintf("machine %q", machine), r.text(project+"/"+one+".jsonl"), want)
	}
}

// TestResumeKeepsALongerPast never overwrites what only this disk has.
func TestResumeKeepsALongerPast(t *testing.T) {
	dir, project := folder(t, "shop")
	main := project + "/" + one + ".jsonl"
	sent := line("/old", "a") + line("/old/api", "b")
	for name, c := range map[string]struct {
		local string
		path  string
		says  string // "": it is brought
	}{
		"a beginning, elsewhere moved": {line("/elsewhere", "a"), main, ""},
		"equal but for the folders":    {line("/p", "a") + line("/q", "b"), main, ""},
		"longer":                       {line(dir, "a") + line(dir, "b") + line(dir, "mine"), main, "has 1 line that"},
		"another end":                  {line(dir, "a") + line(dir, "mine") + line(dir, "mine"), main, "differs from the server's copy from host-0b0b0b0b 0b0b0b0b after line 1"},
		"another talk":                 {line(dir, "mine"), main, "after line 0"},
		"longer in another project":    {sent + line("/old", "mine"), "-other/" + one + ".jsonl", "has 1 line that"},
		"shorter in another project":   {line("/old", "a"), "-other/" + one + ".jsonl", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoom(t, &stored{id: one, machine: abroad, cwd: "/old", path: "-old/" + one + ".jsonl", text: sent})
			r.write(c.path, c.local, time.Hour)
			before := r.files()
			_, err := r.Resume(t.Context(), ResumeRequest{Session: one, Folder: dir})
			want := line(dir, "a") + line(dir+"/api", "b")
			if c.says == "" {
				got := r.text(main)
				kit.Check(t, err == nil && got == want, "%v, %s", err, got)
				return
			}
			kit.Check(t, remote.Is(err, CodeLongerHere) && strings.Contains(err.Error(), c.says), "%v, want %q", err, c.says)
			kit.Check(t, r.text(c.path) == c.local && slices.Equal(before, r.files()), "it left %v", r.files())
			done, err := r.Resume(t.Context(), ResumeRequest{Session: one, Folder: dir, Force: true})
			kit.Require(t, err == nil && r.text(main) == want, "forced: %+v, %v", done, err)
			aside, err := os.ReadFile(cmp.Or(done.Files[0].Aside, filepath.Join(r.Roots[0], c.path)))
			kit.Check(t, err == nil && string(aside) == c.local, "what was here: %q, %v", aside, err)
		})
	}
}

// TestResumeLongerAgent: an agent's own past is kept as well.
func TestResumeLongerAgent(t *testing.T) {
	dir, project := folder(t, "shop")
	r := newRoom(t, &stored{id: one, machine: abroad, cwd: "/old", path: "-old/" + one + ".jsonl", text: line("/old", "a")},
		&stored{id: one + "/agent-a", machine: abroad, parent: one, path: "-old/" + one + "/subagents/agent-a.jsonl", text: line("/old", "x")})
	agent := project + "/" + one + "/subagents/agent-a.jsonl"
	r.write(agent, line(dir, "x")+line(dir, "mine"), time.Hour)
	_, err := r.Resume(t.Context(), ResumeRequest{Session: one, Folder: dir})
	kit.Check(t, remote.Is(err, CodeLongerHere), "%v", err)
	got := r.files()
	kit.Check(t, len(got) == 1 && r.text(agent) == line(dir, "x")+line(dir, "mine"), "%v", got)
}

// TestResumeRefuses writes nothing for live sessions, wrong digests, and names that lead elsewhere.
func TestResumeRefuses(t *testing.T) {
	dir, project := folder(t, "shop")
	x := &stored{id: one, machine: abroad, cwd: "/old", path: "-old/" + one + ".jsonl", text: line("/old", "a")}
	a := &stored{id: one + "/agent-a", machine: abroad, parent: one, path: "-old/" + one + "/subagents/agent-a.jsonl", text: line("/old", "x")}
	r := newRoom(t, x, a)
	refused := func(what, why string) {
		t.Helper()
		_, err := r.Resume(t.Context(), ResumeRequest{Session: one, Folder: dir})
		kit.Check(t, err != nil && strings.Contains(err.Error(), why), "%s: %v", what, err)
		got := r.files()
		kit.Check(t, len(got) == 0, "%s left %v", what, got)
		entries, _ := os.ReadDir(r.Roots[0])
		kit.Check(t, len(entries) == 0, "%s left folders", what)
	}
	a.sum = strings.Repeat("00", 32)
	refused("an agent's wrong digest", "does not match its digest")
	a.sum, x.sum = "", a.sum
	refused("a wrong digest", "does not match its digest")
	x.sum, a.path = "", "../x.jsonl"
	refused("an agent outside", "not a valid place")
	a.path = "-old/" + one + "/subagents/agent-a.jsonl"
	for _, name := range []string{"../x", "/etc/x", "a/../../x", ".x", "a/.x", `a\x`, "", "x.jsonl", "subagents/agent-b.jsonl"} {
		x.blobs = [][2]string{{name, "content"}}
		refused("attachment "+name, "not valid")
	}
	x.blobs = nil
	r.write(project+"/"+one+".jsonl", x.text, 0)
	_, err := r.Resume(t.Context(), ResumeRequest{Session: one, Folder: dir})
	kit.Check(t, remote.Is(err, CodeLive), "a live session: %v", err)
}

// TestResumeOrder: the session's transcript gets its name last, so that a crash never shows half a session.
func TestResumeOrder(t *testing.T) {
	dir, project := folder(t, "shop")
	for _, broken := range []string{"subagents", "tool-results"} {
		r := newRoom(t,
			&stored{id: one, machine: abroad, cwd: "/old", path: "-old/" + one + ".jsonl", text: line("/old", "a"), blobs: [][2]string{{"tool-results/t", "x"}}},
			&stored{id: one + "/agent-a", machine: abroad, parent: one, path: "-old/" + one + "/subagents/agent-a.jsonl", text: line("/old", "x")})
		found, err := r.Find(t.Context(), one)
		work := &resumption{Library: r.Library, request: ResumeRequest{Folder: dir}, session: found.Stored[0], found: found}
		err = errors.Join(err, work.choosePlace(), work.fetch(t.Context()))
		kit.Require(t, err == nil && len(work.staged) == 3, "%v", err)
		kit.Must(t, os.RemoveAll(filepath.Join(r.Roots[0], project, one, broken)))
		_, err = work.keep(t.Context())
		kit.Check(t, err != nil, "%s is gone, and it went well", broken)
		work.discard()
		kit.Check(t, r.text(project+"/"+one+".jsonl") == "", "the session is there without its %s", broken)
		for _, name := range r.files() {
			kit.Check(t, !strings.Contains(name, "/."), "left behind: %s", name)
		}
		_, err = r.Resume(t.Context(), ResumeRequest{Session: one, Folder: dir})
		kit.Check(t, err == nil && r.text(project+"/"+one+".jsonl") != "", "after a crash: %v", err)
	}
}

// TestResumeCopy: of a session of which a machine has several files, each has the name by which Claude Code knows it.
func TestResumeCopy(t *testing.T) {
	dir, project := folder(t, "shop")
	x := &stored{id: one + "~2", machine: abroad, cwd: dir, path: "-theirs/" + one + ".jsonl", text: line(dir, "a")}
	r := newRoom(t, x)
	done, err := r.Resume(t.Context(), ResumeRequest{Session: one + "~2"})
	kit.Check(t, err == nil && done.Session == one && r.text(project+"/"+one+".jsonl") == x.text,
		"%+v, %v; there are %v", done, err, r.files())
}

// TestHereCommandIsQuoted: a command to copy runs nothing that a transcript's working directory says.
func TestHereCommandIsQuoted(t *testing.T) {
	r := newRoom(t)
	path := r.write("-p/"+one+".jsonl", `{"type":"user","cwd":"/tmp/a; touch b","message":{"role":"user","content":"x"}}`+"\n", time.Hour)
	x := &resumption{Library: r.Library, session: &remote.Session{SessionID: one}, project: "/elsewhere"}
	got, want := x.hereCommand(path), "cd '/tmp/a; touch b' && claude --resume "+one
	kit.Check(t, got == want, "%s, want %s", got, want)
}

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
