package document

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/e2e/kit"
)

func (h *harness) refuses(what, name, says string) {
	h.t.Helper()
	err := h.link(h.t.Context(), linkRequest{session: sessionA, path: name, by: byUser, line: -1})
	r, ok := errors.AsType[*refusedError](err)
	kit.Check(h.t, ok && strings.Contains(r.Message, says), "%s is linked, or refused otherwise: %v", what, err)
}

// secretFiles are the files of ccship and its server, made where they belong; the last lies in another project.
func (h *harness) secretFiles() map[string]string {
	h.t.Helper()
	home := filepath.Dir(h.Config().StateDir)
	other := filepath.Join(home, "other")
	for _, dir := range []string{h.Config().StateDir, home, filepath.Join(home, "up"), other} {
		kit.Must(h.t, os.MkdirAll(dir, 0o700))
	}
	conf := *h.conf.Load()
	conf.Path, conf.APIKeyFile = filepath.Join(other, "my.toml"), filepath.Join(other, "my.key")
	h.conf.Store(&conf)
	state := filepath.Join(home, ".local", "state")
	files := map[string]string{
		"configuration":         conf.Path,
		"key":                   conf.APIKeyFile,
		"state":                 filepath.Join(h.Config().StateDir, "state.db"),
		"key of a project":      filepath.Join(h.cwd, ".codetracker", "credentials.json"),
		"database of a server":  filepath.Join(state, "ccship-server", "server.db"),
		"database of `up`":      filepath.Join(h.Config().StateDir, "up", "server.db"),
		"state of `up`":         filepath.Join(state, "ccship", "up", "state", "state.db"),
		"key of a destination":  filepath.Join(other, ".codetracker", "credentials.json"),
		"key above the session": filepath.Join(filepath.Dir(h.cwd), ".codetracker", "credentials.json"),
	}
	for _, path := range files {
		if _, err := os.Stat(path); err != nil {
			saveFile(h.t, filepath.Dir(path), filepath.Base(path), "secret")
		}
	}
	// makes it known
	kit.Must(h.t, h.projections.Attachments.Queue(h.t.Context(), "https://two.example/#"+other, 1, nil, nil))
	return files
}

// TestOwnFilesUnderOtherNames: hard or other links to ccship's own files are not linked, read or opened to be sent.
func TestOwnFilesUnderOtherNames(t *testing.T) {
	h := newHarness(t)
	for what, secret := range h.secretFiles() {
		hard := filepath.Join(h.cwd, "hard.md")
		if err := os.Link(secret, hard); err != nil {
			t.Skipf("no hard links here: %v", err)
		}
		h.refuses("a hard link to the "+what, "hard.md", "own files")
		kit.Must(t, os.Remove(hard))
		doc := h.saveLinked("doc.md", "public")
		before := h.check("doc.md")
		kit.Must(t, errors.Join(os.Remove(doc), os.Link(secret, doc)))
		h.check("doc.md")
		if p := h.check("doc.md"); p.Version != before.Version || !strings.Contains(p.problem, "own files") {
			t.Errorf("the %s in a document's place: version %d after %d, %q", what, p.Version, before.Version, p.problem)
		}
		if c, err := h.Guard.Open(h.cwd, "doc.md", nil); err == nil {
			text, _ := io.ReadAll(io.NewSectionReader(c, 0, c.Size()))
			t.Errorf("the %s is sent: %q", what, text)
			c.Close()
		}
		kit.Must(t, os.Remove(doc))
	}
	saveFile(t, h.cwd, ".codetracker/credentials.json", "secret")
	doc := h.saveLinked("link.md", "public")
	kit.Must(t, errors.Join(os.Remove(doc), os.Symlink(".codetracker/credentials.json", doc)))
	h.check("link.md")
	if p := h.check("link.md"); p.Version != 1 || !strings.Contains(p.problem, "own files") {
		t.Errorf("a link to a key in a document's place: version %d, %q", p.Version, p.problem)
	}
	if c, err := h.Guard.Open(h.cwd, "link.md", nil); err == nil {
		t.Error("a link to a key is sent")
		c.Close()
	}
	saveFile(t, h.cwd, "public.md", "public")
	kit.Must(t, errors.Join(os.Remove(doc), os.Symlink("public.md", doc)))
	h.check("link.md")
	p := h.check("link.md")
	kit.Check(t, p.problem == "" && p.Size == 6, "a link to another file of the folder: %+v", p)
	c := kit.Try(h.Guard.Open(h.cwd, "link.md", nil)).Must(t)
	c.Close()
}

// TestDocumentOfExcludedFolder links files of projects below the session's that are to stay here.
func TestDocumentOfExcludedFolder(t *testing.T) {
	h := newHarness(t)
	for name, text := range map[string]string{
		"a/.ccshipignore": "", "b/.codetracker/config.json": `{"conversation_tracking":{"enabled":false}}`, "c/x": "",
	} {
		saveFile(t, h.cwd, name, text)
	}
	h.projects.Exclude([]string{project.Literal(filepath.Join(h.cwd, "c"))})
	for _, dir := range []string{"a", "b", "c"} {
		name := dir + "/deep/spec.md"
		path := saveFile(t, h.cwd, name, "client")
		h.linkNow(name)
		says := "stays on this machine"
		p := h.check(name)
		kit.Check(t, p.Linked && p.Dest == "" && strings.Contains(p.problem, says), "%s: %+v", name, p)
		kit.Must(t, os.WriteFile(path, []byte("client, changed"), 0o600))
		h.check(name)
		p = h.check(name)
		kit.Check(t, p.Version == 2 && p.Dest == "" && strings.Contains(p.problem, says), "%s changed: %+v", name, p)
	}
	saveFile(t, h.cwd, "a/other.md", "client")
	err := h.link(t.Context(), linkRequest{session: sessionA, path: "a/other.md", by: byViewer, line: -1, id: "w1"})
	r, ok := errors.AsType[*refusedError](err)
	kit.Check(t, ok && strings.Contains(r.Message, "stays"), "a link request of the viewer: %v", err)
	h.saveLinked("open.md", "public")
	kit.Equal(t, "rows wait", h.rows(), 1)
	if err := errors.Join(os.Remove(filepath.Join(h.cwd, "open.md")), os.Symlink("a/deep/spec.md", filepath.Join(h.cwd, "open.md"))); err != nil {
		t.Skip(err)
	}
	h.check("open.md")
	if p := h.check("open.md"); h.rows() != 1 || !strings.Contains(p.problem, "stays on this machine") {
		t.Errorf("a link into an excluded folder: %d rows wait, %q", h.rows(), p.problem)
	}
	kit.Must(t, os.Remove(filepath.Join(h.cwd, "a", ".ccshipignore")))
	if err := h.unlink(t.Context(), linkRequest{session: sessionA, path: "b/deep/spec.md", by: byViewer, line: -1, id: "w2"}); err != nil || h.rows() != 2 {
		t.Errorf("a request to unlink is not answered: %d rows, %v", h.rows(), err)
	}
	h.policies, h.projects.Recheck = nil, 0
	p := h.check("a/deep/spec.md")
	kit.Check(t, p.Dest != "" && p.problem == "", "not excluded any more: %+v", p)
}

// TestWorkingDirectoryReplaced: another folder in its place changes no document until they are linked again.
func TestWorkingDirectoryReplaced(t *testing.T) {
	h := newHarness(t)
	saveFile(t, h.cwd, "a.md", "one")
	saveFile(t, h.cwd, "b.md", "one")
	h.linkNow("a.md")
	h.linkNow("b.md")
	if h.check("a.md").Folder.Inode == 0 {
		t.Skip("folders have no numbers here")
	}
	other := t.TempDir()
	saveFile(t, other, "a.md", "another project's")
	kit.Must(t, errors.Join(os.Rename(h.cwd, h.cwd+"-old"), os.Symlink(other, h.cwd)))
	t.Cleanup(func() { os.RemoveAll(h.cwd + "-old") })
	for _, when := range []string{"in this life", "after a restart"} {
		for range 2 {
			h.check("a.md")
		}
		for _, name := range []string{"a.md", "b.md"} {
			p := h.check(name)
			kit.Check(t, p.Version == 1 && !p.Deleted && p.problem == elsewhereProblem, "%s, %s: %+v", name, when, p)
		}
		h.sessions = map[string]*sessionDocuments{}
		kit.Must(t, h.load(t.Context()))
	}
	h.linkNow("a.md")
	if p := h.check("a.md"); p.Version != 2 || p.problem != "" || p.Size != int64(len("another project's")) {
		t.Errorf("linked again: %+v", p)
	}
	p := h.check("a.md")
	p.Folder.Device++
	p.placed = false
	h.put(p, false)
	p = h.check("a.md")
	kit.Check(t, p.problem == "", "a device that got another number with a restart: %q", p.problem)
}
