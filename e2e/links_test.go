//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestLinks: a project folder and a transcript that lie elsewhere, a loop and an alias. All is delivered, once.
func TestLinks(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		elsewhere := filepath.Join(w.dir, "elsewhere")
		must(t, os.MkdirAll(filepath.Join(elsewhere, "project"), 0o700))
		own, folder, single := newConversation(60, w.cwd()), newConversation(61, w.cwd()), newConversation(62, w.cwd())
		ownPath := w.path("-work-shop", own.session+".jsonl")
		folderPath := filepath.Join(elsewhere, "project", folder.session+".jsonl")
		singlePath := filepath.Join(elsewhere, "single.jsonl")
		w.add(ownPath, own.even(10, 900))
		w.add(folderPath, folder.even(10, 900))
		w.add(singlePath, single.even(10, 900))
		must(t, syscall.Mkfifo(filepath.Join(elsewhere, "pipe"), 0o600))
		for link, target := range map[string]string{
			"-work-linked": filepath.Join(elsewhere, "project"),
			"-work-alias":  filepath.Dir(ownPath),
			"loop":         w.projects(),
			"-work-shop/" + single.session + ".jsonl":               singlePath,
			"-work-shop/0e000000-0000-4000-8000-000000000000.jsonl": filepath.Join(elsewhere, "pipe"),
		} {
			must(t, os.Symlink(target, filepath.Join(w.projects(), link)))
		}
		w.start()
		check := func() {
			t.Helper()
			w.sync()
			w.same(own.session, ownPath)
			w.same(folder.session, folderPath)
			w.same(single.session, singlePath)
			w.verified()
		}
		check()
		w.add(folderPath, folder.even(3, 900))
		w.add(singlePath, single.even(3, 900))
		check()
		s := w.status()
		if s.Files.Tracked != 3 || s.Sent.Entries != 36 {
			t.Errorf("%d transcripts are followed and %d entries were sent, want 3 and 36", s.Files.Tracked, s.Sent.Entries)
		}
		if out := w.ccship("status"); !contains("neither a file nor a folder", out.stdout) {
			t.Errorf("status does not name the link to a pipe:\n%s", out.stdout)
		}
		w.d.MustStop(t)
		w.start()
		check()
		w.entriesSent(0)
	})
}
