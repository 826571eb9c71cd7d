//go:build unix

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// git runs git in the person's home, which is a work tree, at a time of the tale.
func (w *world) git(at string, args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "git", append([]string{"-C", w.dir}, args...)...)
	cmd.Env = append(w.environment(), "GIT_AUTHOR_DATE="+at, "GIT_COMMITTER_DATE="+at, "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Kim", "GIT_AUTHOR_EMAIL=kim@example.invalid", "GIT_COMMITTER_NAME=Kim",
		"GIT_COMMITTER_EMAIL=kim@example.invalid")
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
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

// TestWhyTogether: a session writes a file, its lines are delivered, the person adds a line and commits; from the commit
// the server leads back to the session and its prompt, until the session is forgotten. The repository stays as it is.
func TestWhyTogether(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	w := exactWorld(t)
	file := filepath.Join(w.cwd(), "cart.go")
	const text = "package shop\n\n// total adds what the cart holds.\nfunc total(c Cart) int {\n\treturn sum(c.Prices)\n}\n"
	must(t, os.WriteFile(file, []byte(text+"\nvar byHand = \"a line that Kim wrote\"\n"), 0o600))
	const day = "2026-03-12T09:00:0"
	record := func(second, rest string) string {
		return `{"uuid":"u` + second + `","sessionId":"` + sessionA + `","cwd":` + quoted(w.cwd()) + `,"timestamp":"` + day + second + `Z",` + rest + "}\n"
	}
	w.add(w.path("-work-shop", sessionA+".jsonl"), []byte(record("1", `"type":"user","message":{"role":"user","content":"write the cart"}`)+
		record("2", `"type":"assistant","message":{"id":"m1","role":"assistant","model":"claude-x","content":[{"type":"tool_use","id":"t1","name":"Write","input":{"file_path":`+quoted(file)+`,"content":`+quoted(text)+`}}]}`)+
		record("3", `"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]}`)))
	w.git(day+"9Z", "init", "-q", "-b", "main")
	w.git(day+"9Z", "add", "work/shop/cart.go")
	w.git(day+"9Z", "commit", "-q", "-m", "The cart")
	w.start()
	w.sync()
	named := func() bool { return len(w.why("HEAD").Commits[0].Sessions) == 1 }
	eventually(t, "the server knows who wrote the commit", 8*time.Minute, named)
	c := w.why("HEAD").Commits[0]
	if c.Added != 6 || c.NotProven["by_hand"] != 1 || c.Sessions[0].SessionID != sessionA || c.Sessions[0].Lines != 5 {
		t.Fatalf("the commit: %+v", c)
	}
	if p := c.Sessions[0].Prompts; len(p) != 1 || p[0].Line != 0 || p[0].Lines != 5 || p[0].Text != "write the cart" ||
		!strings.Contains(p[0].URL, "/sessions/"+sessionA+"/") {
		t.Errorf("its prompts: %+v", p)
	}
	if out := w.ccship("why", file+":5"); out.code != 0 || !strings.Contains(out.stdout, "write the cart") {
		t.Errorf("a line of it: exit %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	if got := w.git(day+"9Z", "status", "--porcelain", "-uno") + w.git(day+"9Z", "for-each-ref", "--format=%(refname)"); got != "refs/heads/main" {
		t.Errorf("asking has changed the repository: %q", got)
	}

	if out := w.ccship("forget", sessionA, "--yes"); out.code != 0 {
		t.Fatalf("forget: exit %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	eventually(t, "the server has forgotten who wrote the commit", 8*time.Minute, func() bool { return !named() })
	if c := w.why("HEAD").Commits[0]; c.NotProven["no_transcript"] != 6 {
		t.Errorf("after it was forgotten: %+v", c)
	}
}
