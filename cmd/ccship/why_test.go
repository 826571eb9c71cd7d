package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript/provenance"
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

// TestWhyNote writes a commit's note once, without a word of the prompts, and changes nothing else without the flag.
func TestWhyNote(t *testing.T) {
	w := newTale(t)
	w.by("README.md", "# A shop for everybody\n")
	first := w.commit("by hand")
	w.writes("aaaa", "write the cart", "cart.go", cart)
	w.edits("aaaa", "log it", "cart.go", "\treturn sum(c.Prices)", "\tlog.Print(\"total of a cart\")\n\treturn sum(c.Prices)")
	second := w.commit("the cart")
	w.by("later.txt", "a line that is not committed\n")
	state := func() string { return w.git("for-each-ref") + "\n" + w.git("status", "--porcelain") }
	w.t.Setenv("GIT_COMMITTER_NAME", "Kim")
	w.t.Setenv("GIT_COMMITTER_EMAIL", "kim@example.invalid")
	w.t.Setenv("GIT_AUTHOR_NAME", "Kim")
	w.t.Setenv("GIT_AUTHOR_EMAIL", "kim@example.invalid")
	before := state()
	w.want(w.top, first+".."+second, "aaaa:6(0:5)(3:1)")
	w.want(w.top, "cart.go:5", "aaaa:1(3:1)")
	got := state()
	kit.Require(t, got == before, "without --note: %s, before %s", got, before)
	for range 2 {
		code, out, problem := inProcess(t, append([]string{"why", "HEAD~1..", "--offline", "--note"}, w.flags...)...)
		kit.Require(t, code == 0, "exit %d\n%s%s", code, out, problem)
	}
	want := "ccship show aaaa:0 (5 of 6 lines)\nccship show aaaa:3 (1 of 6 lines)"
	kit.Equal(t, "the note", w.git("notes", "--ref=ccship", "show", second), want)
	got = w.git("notes", "--ref=ccship", "list")
	kit.Check(t, strings.Count(got, "\n") == 0 && strings.HasSuffix(got, second), "notes: %s", got)
	w.git("update-ref", "-d", "refs/notes/ccship")
	kit.Equal(t, "besides the note: before", state(), before)
	for _, args := range [][]string{{"why", "cart.go:1", "--note"}, {"why", "HEAD", "--note", "--link"}} {
		code, _, _ := inProcess(t, append(append(args, "--offline"), w.flags...)...)
		kit.Check(t, code == 2, "%v: exit %d", args, code)
	}
}

// TestWhyOfHostileServer: an answer steers no terminal, also as a note, and chooses no commit and nothing git does.
func TestWhyOfHostileServer(t *testing.T) {
	w := newTale(t)
	w.by("README.md", "# A shop for everybody\n")
	w.commit("by hand")
	w.by("cart.go", cart)
	commit := w.commit("the cart")
	key := filepath.Join(t.TempDir(), "key")
	w.must(os.WriteFile(key, []byte("a file of mine\n"), 0o600))
	answer, _ := hostileAnswer(provenance.Answer{}, true).(provenance.Answer)
	answer.Commit = "-F" + key
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Ccship-Protocol", "1")
		_ = json.NewEncoder(rw).Encode(map[string]any{"commits": []any{answer}})
	}))
	t.Cleanup(server.Close)
	t.Setenv("CCSHIP_SERVER_URL", server.URL)
	for name, value := range map[string]string{"GIT_COMMITTER_NAME": "Kim", "GIT_COMMITTER_EMAIL": "kim@example.invalid",
		"GIT_AUTHOR_NAME": "Kim", "GIT_AUTHOR_EMAIL": "kim@example.invalid"} {
		t.Setenv(name, value)
	}
	t.Chdir(w.top)
	for _, command := range [][]string{{"why", "HEAD"}, {"why", "cart.go:1"}, {"why", "HEAD", "--note"}} {
		code, out, words := inProcess(t, append(command, w.flags...)...)
		if checkHarmless(t, command, out+"\n"+words); code != 0 {
			t.Errorf("%v: exit %d, %q", command, code, words)
		}
	}
	note := w.git("notes", "--ref=ccship", "show", commit)
	if checkHarmless(t, []string{"note"}, note); strings.Contains(note, "of mine") || !strings.Contains(note, "INJECTED") {
		t.Errorf("the note is %q", note)
	}
}

// TestWhyIsNoOption: a name that looks like an option of git is no commit, and git does not do what it says.
func TestWhyIsNoOption(t *testing.T) {
	w := newTale(t)
	w.by("cart.go", cart)
	w.commit("the cart")
	t.Chdir(w.top)
	made := filepath.Join(t.TempDir(), "made")
	for _, name := range []string{"--output=" + made + "..HEAD", "--output=" + made, "--all", "-1", "--stdin", "--glob=x..y"} {
		code, _, words := inProcess(t, append(append([]string{"why", "--offline"}, w.flags...), "--", name)...)
		kit.Check(t, code == 2 && strings.Contains(words, "neither a file here nor a commit"),
			"%s: exit %d, %q", name, code, words)
	}
	list, err := filepath.Glob(made + "*")
	kit.Check(t, err == nil && len(list) == 0, "files were made: %q %v", list, err)
}
