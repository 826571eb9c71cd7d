package project

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// git runs git in a folder, with a user, clock and configuration of its own.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	c := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "protocol.file.allow=always"}, args...)...)
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=kim",
		"GIT_AUTHOR_EMAIL=kim@host.example", "GIT_COMMITTER_NAME=kim", "GIT_COMMITTER_EMAIL=kim@host.example")
	out, err := c.CombinedOutput()
	kit.Require(t, err == nil, "git %s: %v\n%s", strings.Join(args, " "), err, out)
	return strings.TrimSpace(string(out))
}

// commits makes commits in a repository, each with a long message that is like the one before.
func commits(t *testing.T, dir string, n int) {
	t.Helper()
	for i := range n {
		git(t, dir, "commit", "-q", "--allow-empty", "-m", fmt.Sprint(strings.Repeat("A line that every message has. ", 40), i))
	}
}

// TestFirstCommit: the first commit is found whatever form objects and references have, and where it cannot be known,
// nothing is said.
func TestFirstCommit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shop [1]")
	kit.Must(t, os.Mkdir(dir, 0o700))
	git(t, dir, "init", "-q", "-b", "work")
	id, err := FirstCommit(t.Context(), filepath.Join(dir, ".git"))
	kit.Check(t, err != nil, "without a commit: %s", id)
	commits(t, dir, 30)
	want := git(t, dir, "rev-list", "--max-parents=0", "HEAD")
	check := func(what, dir, want string) {
		t.Helper()
		id, err := FirstCommit(t.Context(), filepath.Join(dir, ".git"))
		kit.Check(t, id == want && (err == nil) == (want != ""), "%s: %q, %v; want %q", what, id, err, want)
	}
	check("loose", dir, want)
	git(t, dir, "checkout", "-q", "--orphan", "pages")
	commits(t, dir, 1)
	git(t, dir, "checkout", "-q", "work")
	git(t, dir, "merge", "-q", "--allow-unrelated-histories", "-s", "ours", "-m", "merge", "pages")
	check("two beginnings", dir, want)
	git(t, dir, "branch", "main")
	git(t, dir, "checkout", "-q", "pages")
	check("another branch checked out", dir, want)
	for _, how := range [][]string{{"--window=50", "--depth=50"}, {"--window=0"}} {
		git(t, dir, append([]string{"-c", "repack.useDeltaBaseOffset=" + fmt.Sprint(len(how) > 1), "repack", "-q", "-adf"}, how...)...)
		git(t, dir, "pack-refs", "--all")
		check("packed "+how[0], dir, want)
	}
	commits(t, dir, 2)
	check("packed and loose", dir, want)
	git(t, dir, "checkout", "-q", "--detach", "main")

	other := filepath.Join(t.TempDir(), "shared")
	git(t, dir, "clone", "-q", "--shared", dir, other)
	check("borrowed objects", other, want)
	shallow := filepath.Join(t.TempDir(), "shallow")
	git(t, dir, "clone", "-q", "--depth=1", "file://"+filepath.ToSlash(dir), shallow)
	check("shallow", shallow, "")
	packs := kit.Try(fs.Glob(os.DirFS(dir), ".git/objects/pack/*.pack")).Must(t)
	for _, pack := range packs {
		pack = filepath.Join(dir, pack)
		text := kit.Try(os.ReadFile(pack)).Must(t)
		for i := 64; i < len(text); i++ {
			text[i] ^= 0xa5
		}
		kit.Must(t, os.Remove(pack))
		kit.Must(t, os.WriteFile(pack, text, 0o600))
	}
	check("damaged", dir, "")
}

func FuzzApplyDelta(f *testing.F) {
	f.Add([]byte("tree 1234\n"), []byte("\x0a\x0c\x90\x05\x07parent "))
	f.Fuzz(func(_ *testing.T, base, delta []byte) {
		_, _ = applyDelta(base, delta) // it must not panic
	})
}
