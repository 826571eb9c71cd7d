package audit

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlite"
	"github.com/ccship/ccship/server/store/sqlstore"
	"github.com/ccship/ccship/transcript/planted"
	"github.com/ccship/ccship/transcript/redact"
)

// TestArtifacts: secrets in checkpoints, in every version of a document and in attachments are found, once each, and
// no answer holds one.
func TestArtifacts(t *testing.T) {
	ctx, now := t.Context(), time.Now()
	st := kit.Try(sqlite.Open(ctx, filepath.Join(t.TempDir(), "server.db"), sqlstore.Opening{})).Must(t)
	t.Cleanup(func() { _ = st.Close() })
	text, secret := planted.Plant(rand.New(rand.NewPCG(1, 1)), planted.Kinds()["github-pat"])
	text = "before\n" + text + "\nafter\n"
	head := server.Head{SessionID: "s", Machine: "m", Epoch: "e", EndLine: 1}
	must := func(err error) {
		t.Helper()
		kit.Must(t, err)
	}
	must(st.Put(ctx, &server.Batch{Head: head, Lines: []server.Line{{Raw: []byte(`{}`)}}, Received: now}))
	must(st.PutCheckpoints(ctx, &server.CheckpointBatch{Head: head, Received: now, List: []server.Checkpoint{
		{ID: "clean", Summary: "nothing", Created: now}, {ID: "dirty", Summary: text, Created: now}}}))
	document := func(n int64, content string) server.DocumentEvent {
		sum := sha256.Sum256([]byte(content))
		return server.DocumentEvent{Path: "notes.md", Change: server.Linked, Version: n, Content: []byte(content),
			Size: int64(len(content)), SHA256: sum[:], At: now, AddedAt: now, Line: -1}
	}
	must(st.PutDocuments(ctx, &server.DocumentBatch{Head: head, Received: now,
		Events: []server.DocumentEvent{document(1, text), document(2, "taken out")}}))
	for name, content := range map[string]string{"dirty.txt": text + "again", "image.png": "\x89\x00" + text, "clean.txt": "nothing",
		"windows.txt": "\xff\xfe" + strings.Join(strings.Split(text, ""), "\x00") + "\x00"} {
		u := &server.Upload{Head: head, SHA256: sha256.Sum256([]byte(content)), Size: int64(len(content)), Name: name, At: now}
		_, _, err := st.StartBlob(ctx, u)
		must(err)
		_, err = st.PutBlob(ctx, 0, u.SHA256, 0, []byte(content), now)
		must(err)
		must(st.EndBlob(ctx, u))
	}
	var found []string
	masker, err := redact.New(redact.NewKey())
	must(err)
	read, err := ScanSecrets(ctx, st, masker, func(f SecretFinding) {
		found = append(found, f.Place)
		kit.Check(t, f.Line == -1 && f.Secrets == 1 && !strings.Contains(fmt.Sprintf("%+v", f), secret), "%+v", f)
	}, func(ScanProgress) {})
	must(err)
	want := []string{"attachment dirty.txt", "attachment windows.txt", "checkpoint dirty", "document notes.md, version 1"}
	slices.Sort(found)
	kit.Check(t, slices.Equal(found, want), "found %q, want %q", found, want)
	kit.Check(t, read.Streams == 1 && read.Lines == 1 && read.Files == 6 && read.Skipped == 0, "read %+v", read)
}
