//go:build unix

package claude_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ccship/ccship/lab/setting"
)

// TestRealClaudeWorktree talks in a repository and in a worktree of it that git made beside it, in each version: on the
// server both sessions belong to the repository's project.
func TestRealClaudeWorktree(t *testing.T) {
	setting.Asked(t)
	for _, version := range allVersions() {
		t.Run(version, func(t *testing.T) {
			h := newHome(t, installed(t, version), newStub(t))
			h.version = version
			worktree := filepath.Join(h.dir, "beside")
			h.git("init", "-q")
			must(t, os.WriteFile(filepath.Join(h.cwd(), "file.txt"), []byte("one\n"), 0o600))
			h.git("add", ".")
			h.git("commit", "-q", "-m", "One")
			h.git("worktree", "add", "-q", "-b", "side", worktree)
			w := newWorld(h)
			w.start()
			repository := w.prompt("hello from the repository").SessionID
			h.folder = worktree
			beside := w.prompt("hello from the worktree").SessionID
			w.sync()
			want, got := w.session(repository), w.session(beside)
			if got.Cwd != worktree || want.Cwd == got.Cwd {
				t.Errorf("the sessions are of %s and %s, want %s", want.Cwd, got.Cwd, worktree)
			}
			if want.ProjectHash == "" || got.ProjectHash != want.ProjectHash || got.Project != want.Project {
				t.Errorf("the worktree's session is of the project %s (%s), the repository's of %s (%s)",
					got.Project, got.ProjectHash, want.Project, want.ProjectHash)
			}
			w.settled()
		})
	}
}

// git runs git in the working directory.
func (h *home) git(args ...string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	args = append([]string{"-c", "user.name=Somebody", "-c", "user.email=somebody@example.com"}, args...)
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env = h.cwd(), h.claude(ctx).Env
	if out, err := cmd.CombinedOutput(); err != nil {
		h.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// stored is what the tests read of a session on the server.
type stored struct {
	Cwd, Project string
	ProjectHash  string `json:"project_hash"`
}

// session is a session as the server has it.
func (w *world) session(id string) (s stored) {
	w.t.Helper()
	code, body := w.get("/api/sessions/" + url.PathEscape(id))
	if code != http.StatusOK || json.Unmarshal(body, &s) != nil {
		w.t.Fatalf("session %s: %d %.500s", id, code, body)
	}
	return s
}
