package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// tale is an invented history: a repository, and sessions that worked in it.
type tale struct {
	t     *testing.T
	top   string // the repository
	roots string
	clock time.Time
	calls int
	flags []string
}

func newTale(t *testing.T) *tale {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	jsonHome(t)
	dir := kit.Try(filepath.EvalSymlinks(t.TempDir())).Must(t)
	w := &tale{t: t, top: filepath.Join(dir, "shop"), roots: filepath.Join(dir, "projects"),
		clock: time.Date(2026, 3, 12, 9, 0, 0, 0, time.UTC)}
	w.flags = []string{"--roots", w.roots, "--state-dir", filepath.Join(dir, "state"), "--socket", filepath.Join(dir, "s")}
	for _, folder := range []string{w.top, w.roots} {
		w.must(os.MkdirAll(folder, 0o700))
	}
	w.git("init", "-q", "-b", "main")
	return w
}

func (w *tale) must(err error) {
	w.t.Helper()
	kit.Must(w.t, err)
}

// git runs git as a person whose settings are git's own, ten minutes after what was before.
func (w *tale) git(args ...string) string { return w.gitIn(w.top, args...) }

func (w *tale) gitIn(dir string, args ...string) string {
	w.t.Helper()
	w.clock = w.clock.Add(10 * time.Minute)
	at := w.clock.Format(time.RFC3339)
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_DATE="+at, "GIT_COMMITTER_DATE="+at, "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Kim", "GIT_AUTHOR_EMAIL=kim@example.invalid",
		"GIT_COMMITTER_NAME=Kim", "GIT_COMMITTER_EMAIL=kim@example.invalid", "GIT_EDITOR=true", "GIT_SEQUENCE_EDITOR=true")
	out, err := cmd.CombinedOutput()
	kit.Require(w.t, err == nil, "git %v: %v\n%s", args, err, out)
	return strings.TrimSpace(string(out))
}

// commit commits everything and returns the commit.
func (w *tale) commit(message string) string {
	w.git("add", "-A")
	w.git("commit", "-q", "-m", message)
	return w.git("rev-parse", "HEAD")
}

// by writes a file by hand, as a person does.
func (w *tale) by(file, text string) {
	w.t.Helper()
	path := filepath.Join(w.top, file)
	w.must(os.MkdirAll(filepath.Dir(path), 0o700))
	w.must(os.WriteFile(path, []byte(text), 0o600))
}

func (w *tale) text(file string) string {
	text := kit.Try(os.ReadFile(filepath.Join(w.top, file))).Must(w.t)
	return string(text)
}

// append adds records to a session's transcript.
func (w *tale) append(session, cwd string, records ...map[string]any) {
	w.t.Helper()
	folder := filepath.Join(w.roots, "-home-kim-shop")
	w.must(os.MkdirAll(folder, 0o700))
	f := kit.Try(os.OpenFile(filepath.Join(folder, session+".jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)).Must(w.t)
	for i, r := range records {
		r["sessionId"], r["cwd"], r["timestamp"] = session, cwd, w.clock.Add(time.Duration(i)*time.Second).Format(time.RFC3339Nano)
		r["uuid"] = fmt.Sprintf("%s-%d-%d", session, w.calls, i)
		line := kit.Try(json.Marshal(r)).Must(w.t)
		_ = kit.Try(f.Write(append(line, '\n'))).Must(w.t)
	}
	w.must(f.Close())
}

// asked has a session asked for a call of a tool, which succeeds.
func (w *tale) asked(session, prompt, cwd, tool string, input map[string]any) {
	w.t.Helper()
	w.clock = w.clock.Add(10 * time.Minute)
	w.calls++
	id := fmt.Sprintf("toolu_%d", w.calls)
	w.append(session, cwd,
		map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": prompt}},
		map[string]any{"type": "assistant", "message": map[string]any{"role": "assistant", "content": []any{
			map[string]any{"type": "tool_use", "id": id, "name": tool, "input": input}}}},
		map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": []any{
			map[string]any{"type": "tool_result", "tool_use_id": id, "content": "ok"}}}})
}

// writes has a session write a file.
func (w *tale) writes(session, prompt, file, text string) {
	w.t.Helper()
	w.by(file, text)
	w.asked(session, prompt, w.top, "Write", map[string]any{"file_path": filepath.Join(w.top, file), "content": text})
}

// edits has a session replace a text.
func (w *tale) edits(session, prompt, file, before, after string) {
	w.t.Helper()
	text := w.text(file)
	kit.Require(w.t, strings.Contains(text, before), "%s has no %q", file, before)
	w.by(file, strings.Replace(text, before, after, 1))
	w.asked(session, prompt, w.top, "Edit", map[string]any{"file_path": filepath.Join(w.top, file), "old_string": before,
		"new_string": after})
}

// why asks offline, and returns what is known as one line: sessions with their lines and prompts, then what is not.
func (w *tale) why(dir, about string) string {
	w.t.Helper()
	w.t.Chdir(dir)
	code, out, problem := inProcess(w.t, append([]string{"why", about, "--offline", "--json"}, w.flags...)...)
	if code != 0 {
		return strings.TrimSpace(out + problem)
	}
	return digest(w.t, out)
}

// digest is an answer in short: "session:lines(prompt line:lines) reason:lines", of several joined with "; ".
func digest(t *testing.T, document string) string {
	t.Helper()
	type known struct {
		Sessions []struct {
			SessionID string `json:"session_id"`
			Lines     int
			Prompts   []struct{ Line, Lines int }
		}
		NotProven map[string]int `json:"not_proven"`
	}
	var answer struct{ Commits, Lines []known }
	err := json.Unmarshal([]byte(document), &answer)
	kit.Require(t, err == nil, "%v: %s", err, document)
	var all []string
	for _, c := range append(answer.Commits, answer.Lines...) {
		var parts []string
		for _, s := range c.Sessions {
			text := fmt.Sprintf("%s:%d", s.SessionID, s.Lines)
			for _, p := range s.Prompts {
				text += fmt.Sprintf("(%d:%d)", p.Line, p.Lines)
			}
			parts = append(parts, text)
		}
		for _, reason := range []string{"by_hand", "generated", "restored", "masked", "too_little", "no_transcript", "bot", "not_compared"} {
			if n := c.NotProven[reason]; n > 0 {
				parts = append(parts, fmt.Sprintf("%s:%d", reason, n))
			}
		}
		all = append(all, strings.Join(parts, " "))
	}
	return strings.Join(all, "; ")
}

func (w *tale) want(dir, about, want string) {
	w.t.Helper()
	kit.Equal(w.t, fmt.Sprintf("why %s", about), w.why(dir, about), want)
}

// commitWant asks about everything that was not committed yet.
func (w *tale) commitWant(message, want string) {
	w.t.Helper()
	w.commit(message)
	w.want(w.top, "HEAD", want)
}

const cart = "package shop\n\n// total adds what the cart holds.\nfunc total(c Cart) int {\n\treturn sum(c.Prices)\n}\n"
