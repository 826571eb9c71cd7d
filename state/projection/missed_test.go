package projection

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
)

// A document whose newest version is acknowledged as gone counts as not queued, durably; one that has a newer version,
// or goes elsewhere by now, stays as it is.
func TestMissedDocument(t *testing.T) {
	db := open(t, state.Options{})
	commit(t, db, advance(1, 0, 3, 10))
	facts, _, err := db.State.Files.Routing(t.Context(), 1)
	kit.Must(t, err)
	session := facts.Stream.SessionID
	var told []MissedDocument
	db.Missed = func(m MissedDocument) { told = append(told, m) }
	docs := []Document{
		{Session: session, Path: "away", Linked: true, SHA256: "aa", Dest: server},
		{Session: session, Path: "changed", Linked: true, SHA256: "newer", Dest: server},
		{Session: session, Path: "elsewhere", Linked: true, SHA256: "aa", Dest: "https://two.example/"},
		{Session: session, Path: "sent", Linked: true, SHA256: "aa", Dest: server},
		{Session: session, Path: "unlinked", SHA256: "aa", Dest: server},
	}
	d := Derivation{File: 1, Documents: docs}
	names := []string{"away", "changed", "elsewhere", "unlinked", "unknown", "sent"}
	for _, name := range names {
		d.Batches = append(d.Batches, outbox.Batch{Kind: outbox.Blob, Items: 1, Blob: outbox.BlobRef{
			SHA256: "aa", Name: DocumentBlobs + name, Media: "text/plain", Size: 2 << 20, Root: "/w", Path: name,
		}})
	}
	kit.Must(t, deriveOne(t, db, d))
	for i, name := range names {
		s := outbox.Settlement{Dest: server, Stream: 1, Blobs: true, Seqs: []uint64{d.Batches[i].Seq}, Gone: 1}
		if name == "sent" {
			s.Gone = 0
		}
		kit.Must(t, db.State.Outbox.Settle(t.Context(), []outbox.Settlement{s}))
	}
	docs[0].Dest = ""
	diff := cmp.Diff(docs, documentsOf(t, db))
	kit.Check(t, diff == "", "documents (-want +got):\n%s", diff)
	diff = cmp.Diff([]MissedDocument{{session, "away", "aa"}}, told)
	kit.Check(t, diff == "", "told (-want +got):\n%s", diff)
}
