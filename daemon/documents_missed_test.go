package daemon

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

// TestDocumentAwayForAMoment: a document that is away while it is to be sent is said to be missing, and gets there.
func TestDocumentAwayForAMoment(t *testing.T) {
	w, s, cwd := newDocumentWorld(t)
	text := string(bytes.Repeat([]byte("0123456789abcdef"), 160<<10)) // 2.5 MiB: not in its row
	doc := saveFile(t, cwd, "large.md", text)
	old := time.Now().Add(-time.Hour)
	kit.Must(t, os.Chtimes(doc, old, old))
	w.startWith("-p/"+sessionA+".jsonl", records(cwd, 0, 3))
	w.must(w.client.Pause(t.Context(), control.PauseRequest{}))
	w.link(sessionA, "large.md")
	away := filepath.Join(filepath.Dir(cwd), filepath.Base(cwd)+"-away")
	kit.Must(t, os.Rename(cwd, away)) // the folder: that is no deletion
	w.must(w.client.Resume(t.Context()))
	w.sync()
	w.until("it is said that it is not there", func() bool {
		d, err := w.client.Documents(t.Context(), sessionA)
		return err == nil && d.Documents[0].Problem != ""
	})
	_, there := s.content(sessionA, "large.md")
	kit.Require(t, !there, "the server has it")
	kit.Must(t, os.Rename(away, cwd))
	w.until("the server has it", func() bool { got, ok := s.content(sessionA, "large.md"); return ok && got == text })
	w.until("nothing is wrong any more", func() bool {
		d, err := w.client.Documents(t.Context(), sessionA)
		return err == nil && d.Documents[0].Problem == "" && d.Documents[0].Version == 1
	})
	got := s.changes(sessionA, "large.md")
	kit.Check(t, strings.HasPrefix(got, "linked 1"), "changes: %s", got)
}
