package route

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/tail"
)

func gitIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	c := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=kim", "-c", "user.email=kim@host.example"}, args...)...)
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	out, err := c.CombinedOutput()
	kit.Require(t, err == nil, "git %v: %v\n%s", args, err, out)
}

// TestRecognize: clones of one repository in folders of one name are one project, also once a folder was moved, and its
// worktrees and folders are of it. Everything keeps its hash.
func TestRecognize(t *testing.T) {
	b := newBench(t)
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	for _, dir := range []string{"kim", "lee", "moved", "other/shop", "new/shop"} {
		kit.Must(t, os.MkdirAll(at(dir), 0o700))
	}
	gitIn(t, root, "init", "-q", "-b", "main", "kim/shop")
	gitIn(t, at("kim/shop"), "commit", "-q", "--allow-empty", "-m", "first")
	for _, clone := range []string{"lee/shop", "kim/fork", "kim/theirs"} {
		gitIn(t, at(clone+"/.."), "clone", "-q", at("kim/shop"), at(clone))
		gitIn(t, at(clone), "remote", "remove", "origin")
	}
	kit.Must(t, os.Mkdir(at("lee/shop/sub"), 0o700))
	gitIn(t, at("kim/theirs"), "remote", "add", "origin", "https://host.example/lee/shop.git")
	gitIn(t, at("kim/shop"), "worktree", "add", "-q", "-b", "fix", at("elsewhere"))
	gitIn(t, root, "init", "-q", "-b", "main", "other/shop")
	gitIn(t, at("other/shop"), "commit", "-q", "--allow-empty", "-m", "another")
	gitIn(t, root, "init", "-q", "-b", "main", "new/shop")

	next := tail.FileID(0)
	of := func(dir string) outbox.Stream {
		t.Helper()
		next++
		c := chunk(next, lineIn(at(dir)))
		d := b.decide(c)
		b.commit(c, d)
		return d.Facts.Stream
	}
	shop := of("kim/shop")
	kit.Require(t, shop.Repository != "", "nothing is known of the repository")
	same := func(dir string, want bool) {
		t.Helper()
		s := of(dir)
		got := s.Repository == shop.Repository
		kit.Check(t, got == want, "%s is of the same project: %v", dir, got)
		kit.Check(t, dir == "elsewhere" || s.ProjectHash != shop.ProjectHash || s.Cwd == shop.Cwd,
			"%s has the hash of another folder", dir)
	}
	same("lee/shop", true)
	same("lee/shop/sub", true)
	same("elsewhere", true)
	same("kim/fork", false)
	same("other/shop", false)
	if s := of("kim/theirs"); s.Repository != s.ProjectHash {
		t.Errorf("with a remote it is %.8s, not its remote %.8s", s.Repository, s.ProjectHash)
	}
	s := of("new/shop")
	kit.Check(t, s.Repository == "", "without a commit it is %.8s", s.Repository)
	s = of("moved")
	kit.Check(t, s.Repository == "", "without a repository it is %.8s", s.Repository)

	kit.Must(t, os.Rename(at("kim/shop"), at("moved/store")))
	same("moved/store", folderKnown(t, at("moved/store")))
	b.load()
	same("moved/store", folderKnown(t, at("moved/store")))
	same("lee/shop", true)
}

// TestRecognizeFormLater: a repository that is made later in a folder is that of its other forms, too.
func TestRecognizeFormLater(t *testing.T) {
	b := newBench(t)
	dir := t.TempDir()
	forms := []string{dir, dir + "/"}
	at := make([]tail.Cursor, len(forms))
	of := func() (ids []string) {
		t.Helper()
		for i, form := range forms {
			c := chunk(tail.FileID(i+1), lineIn(form))
			c.Prev, c.From = at[i], at[i]
			c.To.Offset += at[i].Offset
			c.To.Line += at[i].Line
			d := b.decide(c)
			b.commit(c, d)
			at[i] = c.To
			ids = append(ids, cmp.Or(d.Facts.Stream.Repository, d.Facts.Stream.ProjectHash))
		}
		return ids
	}
	before := of()
	kit.Equal(t, "without a repository", before[1], before[0])
	gitIn(t, dir, "init", "-q", "-b", "main")
	kit.Equal(t, "without a commit", of()[1], before[0])
	gitIn(t, dir, "commit", "-q", "--allow-empty", "-m", "first")
	b.load()
	kit.Eventually(t, "both are of the repository", time.Minute, func() bool {
		later := of()
		return later[1] == later[0] && later[0] != before[0]
	})
}

// folderKnown reports whether the system tells a folder that was renamed from another one.
func folderKnown(t *testing.T, dir string) bool {
	t.Helper()
	info := kit.Try(os.Stat(dir)).Must(t)
	return folderID(info) != ""
}

// TestRecognizeForms: the forms that Windows has for one folder are one project, each with the hash of its own text. A
// transcript that names no folder is of that which others in its folder name, whatever the form.
func TestRecognizeForms(t *testing.T) {
	b := newBench(t)
	next := tail.FileID(0)
	of := func(cwd string) outbox.Stream {
		t.Helper()
		next++
		c := chunk(next, fmt.Sprintf(`{"type":"user","cwd":%q}`+"\n", cwd))
		d := b.decide(c)
		b.commit(c, d)
		return d.Facts.Stream
	}
	one := func(s outbox.Stream) string { return cmp.Or(s.Repository, s.ProjectHash) }
	app := of(`Q:\w\app`)
	kit.Equal(t, "the usual form adds", app.Repository, "")
	for _, form := range []string{`q:\w\app`, "Q:/w/app", "q:/w/app/", "/q/w/app", "/mnt/q/w/app/", `\\?\Q:\w\app`} {
		s := of(form)
		kit.Equal(t, form, one(s), one(app))
		kit.Equal(t, "the name of "+form, s.Project, "app")
		kit.Check(t, s.ProjectHash != app.ProjectHash, "%s has the hash of another text", form)
	}
	for _, other := range []string{`Q:\w\app2`, "/w/app", `R:\w\app`, `Q:\W\app`} {
		kit.Check(t, one(of(other)) != one(app), "%s is the same project", other)
	}
	var f folders
	f.add("q--w-app", `q:\w\app`)
	for _, name := range []string{"Q--w-app", "-mnt-q-w-app", "-q-w-app"} {
		kit.Equal(t, name, f.find(name, func(string) bool { return true }), `q:\w\app`)
	}
}
