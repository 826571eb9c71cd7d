package daemon

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/document/file"
	"github.com/ccship/ccship/daemon/project"
)

func (g *gallery) refuses(what, name, says string) {
	g.t.Helper()
	err := g.d.documents.link(g.t.Context(), linkage{session: sessionA, path: name, by: byUser, line: -1})
	if r, ok := errors.AsType[*file.Refusal](err); !ok || !strings.Contains(r.Message, says) {
		g.t.Errorf("%s is linked, or refused otherwise: %v", what, err)
	}
}

// secretFiles are the files of ccship and its server, made where they belong; the last lies in another project.
func (g *gallery) secretFiles() map[string]string {
	g.t.Helper()
	home := filepath.Dir(g.cfg.StateDir)
	other := filepath.Join(home, "other")
	for _, dir := range []string{g.cfg.StateDir, home, filepath.Join(home, "up"), other} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			g.t.Fatal(err)
		}
	}
	conf := *g.d.conf.Load()
	conf.Path, conf.APIKeyFile = filepath.Join(other, "my.toml"), filepath.Join(other, "my.key")
	g.d.conf.Store(&conf)
	state := filepath.Join(home, ".local", "state")
	files := map[string]string{
		"configuration":         conf.Path,
		"key":                   conf.APIKeyFile,
		"state":                 filepath.Join(g.cfg.StateDir, "state.db"),
		"key of a project":      filepath.Join(g.cwd, ".codetracker", "credentials.json"),
		"database of a server":  filepath.Join(state, "ccship-server", "server.db"),
		"database of `up`":      filepath.Join(g.cfg.StateDir, "up", "server.db"),
		"state of `up`":         filepath.Join(state, "ccship", "up", "state", "state.db"),
		"key of a destination":  filepath.Join(other, ".codetracker", "credentials.json"),
		"key above the session": filepath.Join(filepath.Dir(g.cwd), ".codetracker", "credentials.json"),
	}
	for _, path := range files {
		if _, err := os.Stat(path); err != nil {
			saveFile(g.t, filepath.Dir(path), filepath.Base(path), "secret")
		}
	}
	if err := g.d.db.QueueBeside(g.t.Context(), "https://two.example/#"+other, 1, nil, nil); err != nil { // makes it known
		g.t.Fatal(err)
	}
	return files
}

// TestOwnFilesUnderOtherNames has ccship's own files come by as hard links, by links and in the place of documents:
// none is linked, read for a version, or opened to be sent.
func TestOwnFilesUnderOtherNames(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	for what, secret := range g.secretFiles() {
		hard := filepath.Join(g.cwd, "hard.md")
		if err := os.Link(secret, hard); err != nil {
			t.Skipf("no hard links here: %v", err)
		}
		g.refuses("a hard link to the "+what, "hard.md", "own files")
		if err := os.Remove(hard); err != nil {
			t.Fatal(err)
		}
		doc := saveFile(t, g.cwd, "doc.md", "public")
		g.linkNow("doc.md")
		before := g.look("doc.md")
		if err := errors.Join(os.Remove(doc), os.Link(secret, doc)); err != nil {
			t.Fatal(err)
		}
		g.look("doc.md")
		if p := g.look("doc.md"); p.Version != before.Version || !strings.Contains(p.problem, "own files") {
			t.Errorf("the %s in a document's place: version %d after %d, %q", what, p.Version, before.Version, p.problem)
		}
		if c, err := g.d.openBlob(g.cwd, "doc.md"); err == nil {
			text, _ := io.ReadAll(io.NewSectionReader(c, 0, c.Size()))
			t.Errorf("the %s is sent: %q", what, text)
			c.Close()
		}
		if err := os.Remove(doc); err != nil {
			t.Fatal(err)
		}
	}
	saveFile(t, g.cwd, ".codetracker/credentials.json", "secret")
	doc := saveFile(t, g.cwd, "link.md", "public")
	g.linkNow("link.md")
	if err := errors.Join(os.Remove(doc), os.Symlink(".codetracker/credentials.json", doc)); err != nil {
		t.Fatal(err)
	}
	g.look("link.md")
	if p := g.look("link.md"); p.Version != 1 || !strings.Contains(p.problem, "own files") {
		t.Errorf("a link to a key in a document's place: version %d, %q", p.Version, p.problem)
	}
	if c, err := g.d.openBlob(g.cwd, "link.md"); err == nil {
		t.Error("a link to a key is sent")
		c.Close()
	}
	saveFile(t, g.cwd, "public.md", "public")
	if err := errors.Join(os.Remove(doc), os.Symlink("public.md", doc)); err != nil {
		t.Fatal(err)
	}
	g.look("link.md")
	if p := g.look("link.md"); p.problem != "" || p.Size != 6 {
		t.Errorf("a link to another file of the folder: %+v", p)
	}
	c, err := g.d.openBlob(g.cwd, "link.md")
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// TestDocumentOfExcludedFolder links files of projects below the session's that are to stay here.
func TestDocumentOfExcludedFolder(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	for name, text := range map[string]string{
		"a/.ccshipignore": "", "b/.codetracker/config.json": `{"conversation_tracking":{"enabled":false}}`, "c/x": "",
	} {
		saveFile(t, g.cwd, name, text)
	}
	g.d.projects.Exclude([]string{project.Literal(filepath.Join(g.cwd, "c"))})
	for _, dir := range []string{"a", "b", "c"} {
		name := dir + "/deep/spec.md"
		path := saveFile(t, g.cwd, name, "client")
		g.linkNow(name)
		says := "stays on this machine"
		if p := g.look(name); !p.Linked || p.Dest != "" || !strings.Contains(p.problem, says) {
			t.Errorf("%s: %+v", name, p)
		}
		if err := os.WriteFile(path, []byte("client, changed"), 0o600); err != nil {
			t.Fatal(err)
		}
		g.look(name)
		if p := g.look(name); p.Version != 2 || p.Dest != "" || !strings.Contains(p.problem, says) {
			t.Errorf("%s changed: %+v", name, p)
		}
	}
	saveFile(t, g.cwd, "a/other.md", "client")
	err := g.d.documents.link(t.Context(), linkage{session: sessionA, path: "a/other.md", by: byViewer, line: -1, wish: "w1"})
	if r, ok := errors.AsType[*file.Refusal](err); !ok || !strings.Contains(r.Message, "stays") {
		t.Errorf("a wish of the viewer: %v", err)
	}
	saveFile(t, g.cwd, "open.md", "public")
	g.linkNow("open.md")
	if rows := g.rows(); rows != 1 {
		t.Errorf("%d rows wait, want that of the open one", rows)
	}
	if err := errors.Join(os.Remove(filepath.Join(g.cwd, "open.md")), os.Symlink("a/deep/spec.md", filepath.Join(g.cwd, "open.md"))); err != nil {
		t.Skip(err)
	}
	g.look("open.md")
	if p := g.look("open.md"); g.rows() != 1 || !strings.Contains(p.problem, "stays on this machine") {
		t.Errorf("a link into an excluded folder: %d rows wait, %q", g.rows(), p.problem)
	}
	if err := os.Remove(filepath.Join(g.cwd, "a", ".ccshipignore")); err != nil {
		t.Fatal(err)
	}
	if err := g.d.documents.unlink(t.Context(), linkage{session: sessionA, path: "b/deep/spec.md", by: byViewer, line: -1, wish: "w2"}); err != nil || g.rows() != 2 {
		t.Errorf("a wish to unlink is not answered: %d rows, %v", g.rows(), err)
	}
	g.d.documents.optouts, g.d.projects.Recheck = nil, 0
	if p := g.look("a/deep/spec.md"); p.Dest == "" || p.problem != "" {
		t.Errorf("not excluded any more: %+v", p)
	}
}

// TestWorkingDirectoryReplaced puts another folder in the place of the working directory: that is no change of the
// documents, until they are linked again.
func TestWorkingDirectoryReplaced(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	saveFile(t, g.cwd, "a.md", "one")
	saveFile(t, g.cwd, "b.md", "one")
	g.linkNow("a.md")
	g.linkNow("b.md")
	if g.look("a.md").Folder.Inode == 0 {
		t.Skip("folders have no numbers here")
	}
	x := g.d.documents
	other := t.TempDir()
	saveFile(t, other, "a.md", "another project's")
	if err := errors.Join(os.Rename(g.cwd, g.cwd+"-old"), os.Symlink(other, g.cwd)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(g.cwd + "-old") })
	for _, when := range []string{"in this life", "after a restart"} {
		for range 2 {
			g.look("a.md")
		}
		for _, name := range []string{"a.md", "b.md"} {
			if p := g.look(name); p.Version != 1 || p.Deleted || p.problem != elsewhereProblem {
				t.Errorf("%s, %s: %+v", name, when, p)
			}
		}
		x.shelves = map[string]*shelf{}
		if err := x.load(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	g.linkNow("a.md")
	if p := g.look("a.md"); p.Version != 2 || p.problem != "" || p.Size != int64(len("another project's")) {
		t.Errorf("linked again: %+v", p)
	}
	p := g.look("a.md")
	p.Folder.Device++
	p.placed = false
	x.put(p, false)
	if p = g.look("a.md"); p.problem != "" {
		t.Errorf("a device that got another number with a restart: %q", p.problem)
	}
}
