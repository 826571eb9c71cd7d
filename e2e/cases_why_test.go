//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// git runs git in the person's home, which is a work tree, at a time of the tale.
func (w *world) git(at string, args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "git", append([]string{"-C", w.dir}, args...)...)
	cmd.Env = append(w.environment(), "GIT_AUTHOR_DATE="+at, "GIT_COMMITTER_DATE="+at, "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Kim", "GIT_AUTHOR_EMAIL=kim@example.invalid", "GIT_COMMITTER_NAME=Kim",
		"GIT_COMMITTER_EMAIL=kim@example.invalid")
	out, err := cmd.CombinedOutput()
	kit.Require(w.t, err == nil, "git %v: %v\n%s", args, err, out)
	return strings.TrimSpace(string(out))
}

// whyAnswer is what the test reads of `ccship why --json`.
type whyAnswer struct {
	Commits []struct {
		Added    int
		Sessions []struct {
			SessionID string `json:"session_id"`
			Lines     int
			Prompts   []struct {
				Line, Lines int
				Text, URL   string
			}
		}
		NotProven map[string]int `json:"not_proven"`
	}
}

func (w *world) why(args ...string) (a whyAnswer) {
	w.t.Helper()
	out := w.ccship(append([]string{"why", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out.stdout), &a); out.code != 0 || err != nil || len(a.Commits) != 1 {
		w.t.Fatalf("why %v: exit %d, %v\n%s%s", args, out.code, err, out.stdout, out.stderr)
	}
	return a
}

// day is the day of the tale, up to the tens of seconds.
const day = "2026-03-12T09:00:0"

// wrote adds a session to a person's transcripts, that was asked to write a file.
func (w *world) wrote(session, prompt, file, text string) {
	w.t.Helper()
	record := func(second, rest string) string {
		return `{"uuid":"u` + second + session[:8] + `","sessionId":"` + session + `","cwd":` + quoted(w.cwd()) + `,"timestamp":"` + day + second + `Z",` + rest + "}\n"
	}
	w.add(w.path("-work-shop", session+".jsonl"), []byte(record("1", `"type":"user","message":{"role":"user","content":`+quoted(prompt)+`}`)+
		record("2", `"type":"assistant","message":{"id":"m`+session[:8]+`","role":"assistant","model":"claude-x","content":[{"type":"tool_use","id":"t1","name":"Write","input":{"file_path":`+quoted(file)+`,"content":`+quoted(text)+`}}]}`)+
		record("3", `"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]}`)))
}

// page is a page of the viewer for the person whose key the home has, and its status.
func (w *world) page(path string) (int, string) {
	w.t.Helper()
	jar := kit.Try(cookiejar.New(nil)).Must(w.t)
	client := &http.Client{Jar: jar}
	defer client.CloseIdleConnections()
	at := w.exact.url.String()
	in := kit.Try(client.PostForm(at+"/login", url.Values{"key": {w.key}})).Must(w.t)
	must(w.t, in.Body.Close())
	answer := kit.Try(client.Get(at + path)).Must(w.t)
	defer answer.Body.Close()
	body := kit.Try(io.ReadAll(answer.Body)).Must(w.t)
	return answer.StatusCode, string(body)
}

var (
	commitsPanel = regexp.MustCompile(`(?s)<details class="panel" id="commits".*?</details>`)
	times        = regexp.MustCompile(`(?s)<time.*?</time>`)
)

// commitsOf is what the page of a session shows of its commits, without times.
func (w *world) commitsOf(session string) string {
	w.t.Helper()
	code, page := w.page("/sessions/" + session)
	if code != http.StatusOK {
		return fmt.Sprint(code)
	}
	return times.ReplaceAllString(commitsPanel.FindString(page), "")
}

func needsGit(t testing.TB) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
}

// TestWhyTogether: a session writes a file, its lines are delivered, the person adds a line and commits; from the commit
// the server leads back to the session and its prompt, and from the session to the commit, until the session is forgotten.
// The repository stays as it is.
func TestWhyTogether(t *testing.T) {
	needsGit(t)
	w := aloneWorld(t)
	file := filepath.Join(w.cwd(), "cart.go")
	const text = "package shop\n\n// total adds what the cart holds.\nfunc total(c Cart) int {\n\treturn sum(c.Prices)\n}\n"
	must(t, os.WriteFile(file, []byte(text+"\nvar byHand = \"a line that Kim wrote\"\n"), 0o600))
	w.wrote(sessionA, "write the cart", file, text)
	w.git(day+"9Z", "init", "-q", "-b", "main")
	w.git(day+"9Z", "add", "work/shop/cart.go")
	w.git(day+"9Z", "commit", "-q", "-m", "The cart")
	w.startAndSync()
	named := func() bool { return len(w.why("HEAD").Commits[0].Sessions) == 1 }
	eventually(t, "the server knows who wrote the commit", 8*time.Minute, named)
	c := w.why("HEAD").Commits[0]
	kit.Require(t, c.Added == 6 && c.NotProven["by_hand"] == 1 && c.Sessions[0].SessionID == sessionA && c.Sessions[0].Lines == 5,
		"the commit: %+v", c)
	if p := c.Sessions[0].Prompts; len(p) != 1 || p[0].Line != 0 || p[0].Lines != 5 || p[0].Text != "write the cart" ||
		!strings.Contains(p[0].URL, "/sessions/"+sessionA+"/") {
		t.Errorf("its prompts: %+v", p)
	}
	commit := w.git(day+"9Z", "rev-parse", "HEAD")
	if got := w.commitsOf(sessionA); !strings.Contains(got, `title="`+commit+`"`) || !strings.Contains(got, "5 of 6 lines") {
		t.Errorf("the session's page shows of its commits: %s", got)
	}
	out := w.ccship("show", sessionA, "--json")
	kit.Check(t, strings.Contains(strings.Join(strings.Fields(out.stdout), ""), `"added":6,"lines":5`), "show: exit %d\n%s%s", out.code, out.stdout, out.stderr)
	w.look("write the cart", 0, "why", file+":5")
	got := w.git(day+"9Z", "status", "--porcelain", "-uno") + w.git(day+"9Z", "for-each-ref", "--format=%(refname)")
	kit.Check(t, got == "refs/heads/main", "asking has changed the repository: %q", got)

	w.look("", 0, "forget", sessionA, "--yes")
	eventually(t, "the server has forgotten who wrote the commit", 8*time.Minute, func() bool { return !named() })
	c = w.why("HEAD").Commits[0]
	kit.Check(t, c.NotProven["no_transcript"] == 6, "after it was forgotten: %+v", c)
	kit.Equal(t, "the page of the forgotten session", w.commitsOf(sessionA), "404")
}

// member gives a person's home a key of a new member of the server.
func (w *world) member(name string) {
	w.t.Helper()
	for _, args := range [][]string{{"user", "add", name}, {"key", "create", "--user", name, "--name", name + "s-laptop"}} {
		w.writeKey(strings.TrimSpace(w.serverTool(0, args...).stdout))
	}
}

// seen is all that a person learns of a commit: on the command line, as Claude does, and in the viewer.
func (w *world) seen(session string) map[string]string {
	w.t.Helper()
	link := kit.Try(url.Parse(strings.TrimSpace(w.ccship("why", "HEAD", "--link").stdout))).Must(w.t)
	code, page := w.page(link.RequestURI())
	kit.Check(w.t, code == http.StatusOK, "%s: %d\n%s", link, code, page)
	_, page, _ = strings.Cut(page, `<main`)
	return map[string]string{"why": w.ccship("why", "HEAD").stdout, "why --json": w.ccship("why", "HEAD", "--json").stdout,
		"a file": w.ccship("why", "work/shop/cart.go", "--json").stdout, "the page of the commit": page,
		"MCP":                     w.mcp(`"method":"tools/call","params":{"name":"search_history","arguments":{"why":"HEAD","user":"*"}}`, `"id":2`),
		"the page of the session": w.commitsOf(session)}
}

// TestWhyOfTwo: two members ask about one commit that a session of each wrote. What the one learns is, byte for byte, what
// there was to learn before the other's session came: no name, no prompt, no count.
func TestWhyOfTwo(t *testing.T) {
	t.Parallel()
	needsGit(t)
	ann := exactWorld(t)
	bob := &world{home: newHome(t), gate: ann.gate, exact: ann.exact}
	bob.url = ann.url
	ann.member("ann")
	bob.member("bob")
	const first = "package shop\n\n// total adds what the cart holds.\nfunc total(c Cart) int {\n\treturn sum(c.Prices)\n}\n"
	const both = first + "\n// taxes are those of the year.\nfunc taxes(c Cart) int {\n\treturn total(c) / ratesOfTheYear\n}\n"
	file := filepath.Join(ann.cwd(), "cart.go")
	must(t, os.WriteFile(file, []byte(both), 0o600))
	ann.git(day+"9Z", "init", "-q", "-b", "main")
	ann.git(day+"9Z", "add", "work/shop/cart.go")
	ann.git(day+"9Z", "commit", "-q", "-m", "The cart")
	bob.git(day+"9Z", "init", "-q", "-b", "main")
	bob.git(day+"9Z", "pull", "-q", ann.dir, "main")
	of := func(w *world, session string, lines int) func() bool {
		return func() bool {
			c := w.why("HEAD").Commits[0]
			return len(c.Sessions) == 1 && c.Sessions[0].SessionID == session && c.Sessions[0].Lines == lines
		}
	}
	ann.wrote(sessionA, "write the cart", file, first)
	ann.start()
	ann.sync()
	eventually(t, "ann's session is named for her lines", 8*time.Minute, of(ann, sessionA, 5))
	before := ann.seen(sessionA)
	for what, text := range before {
		kit.Check(t, regexp.MustCompile(`\b5\b`).MatchString(text), "%s has no number of her lines: %s", what, text)
	}

	bob.wrote(sessionB, "write the taxes", filepath.Join(bob.cwd(), "cart.go"), both)
	bob.start()
	bob.sync()
	eventually(t, "bob's session is named for all lines", 8*time.Minute, of(bob, sessionB, 9))
	for what, text := range ann.seen(sessionA) {
		kit.Check(t, text == before[what], "%s tells ann of bob's session: %s\nbefore it came: %s", what, text, before[what])
	}
	for what, text := range bob.seen(sessionB) {
		kit.Check(t, regexp.MustCompile(`\b9\b`).MatchString(text) && !regexp.MustCompile(sessionA+`|\bann\b|write the cart`).MatchString(text),
			"%s, for bob: %s", what, text)
	}
	for _, x := range []struct {
		w    *world
		page string
	}{{ann, sessionB}, {bob, sessionA}} {
		kit.Equal(t, "the page of the other one's session", x.w.commitsOf(x.page), "404")
	}
	ann.look("", 0, "forget", sessionA, "--yes")
	eventually(t, "ann's session is forgotten", 8*time.Minute, func() bool { return ann.commitsOf(sessionA) == "404" })
	got := bob.commitsOf(sessionB)
	kit.Check(t, strings.Contains(got, "9 of 9 lines"), "bob's session, when ann's is forgotten: %s", got)
}
