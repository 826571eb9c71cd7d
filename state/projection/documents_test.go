package projection

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

func documentsOf(t *testing.T, db *DB) (all []Document) {
	t.Helper()
	kit.Must(t, db.Documents.Each(t.Context(), func(d Document) { all = append(all, d) }, func(string) {}))
	return all
}

func linkRequestsOf(t *testing.T, db *DB) (all []LinkRequest) {
	t.Helper()
	var sessions []string
	kit.Must(t, db.Documents.Each(t.Context(), func(Document) {}, func(session string) { sessions = append(sessions, session) }))
	for _, session := range slices.Compact(sessions) {
		asks := kit.Try(db.Documents.LinkRequests(t.Context(), session)).Must(t)
		all = append(all, asks...)
	}
	return all
}

func deriveOne(t *testing.T, db *DB, d Derivation) error {
	t.Helper()
	errs, err := db.Commit(t.Context(), []Derivation{d})
	if err != nil {
		return err
	}
	return errs[0]
}

// A document and the rows that tell of it are durable together, or neither is; what is kept outlives a restart and a
// compaction, and goes with its session alone.
func TestDocuments(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	failing := ""
	opt := state.Options{Path: path, Fault: func(step string) error { return kit.If[error](step == failing, errors.New("disk on fire"), nil) }}
	db := open(t, opt)
	commit(t, db, advance(1, 0, 3, 10))
	spec := Document{
		Session: "s1", Path: "docs/spec.md", Linked: true, AddedAt: 1, AddedBy: "user", Version: 3, ChangedAt: 2, By: "claude", Size: 4, SHA256: "ab",
		Stat: Stamp{Size: 4, ModTime: 5, ChangeTime: 6, Inode: 7}, Dest: server,
	}
	events := outbox.Batch{Kind: outbox.Documents, Items: 1, Raw: 2, Frame: []byte("{}")}
	for _, failing = range []string{"put document", "put batch", "commit"} {
		err := deriveOne(t, db, Derivation{File: 1, Documents: []Document{spec}, Batches: []outbox.Batch{events}})
		kit.Check(t, err != nil, "a step that broke at %q is said to be durable", failing)
		if got := documentsOf(t, db); len(got) != 0 || db.State.Outbox.Usage().Batches != 1 {
			t.Errorf("broken at %q: %v and %d batches are kept", failing, got, db.State.Outbox.Usage().Batches)
		}
	}
	failing = ""
	kit.Err(t, "a document of an unknown file",
		state.ErrUnknownFile)(deriveOne(t, db, Derivation{File: 9, Documents: []Document{spec}}))
	other := Document{Session: "s10", Path: "docs/spec.md", Version: 1, Deleted: true}
	kit.Must(t, deriveOne(t, db, Derivation{File: 1, Documents: []Document{spec}, Batches: []outbox.Batch{events}}))
	kit.Must(t, deriveOne(t, db, Derivation{Documents: []Document{other, {Session: "s1", Path: "한글.md", Linked: true, TooLarge: true}}}))
	want := []Document{spec, {Session: "s1", Path: "한글.md", Linked: true, TooLarge: true}, other}
	diff := cmp.Diff(want, documentsOf(t, db))
	kit.Check(t, diff == "", "documents (-want +got):\n%s", diff)
	kit.Must(t, db.State.Compact(t.Context()))
	closeNow(t, db)
	db = open(t, opt)
	diff = cmp.Diff(want, documentsOf(t, db))
	kit.Check(t, diff == "", "documents after a restart (-want +got):\n%s", diff)
	kit.Equal(t, "batches wait", db.State.Outbox.Usage().Batches, 2)
	kit.Must(t, db.Drop(context.Background(), []tail.FileID{1}))
	diff = cmp.Diff([]Document{other}, documentsOf(t, db))
	kit.Check(t, diff == "", "documents after a drop (-want +got):\n%s", diff)
	kit.Must(t, db.Documents.Drop(t.Context(), "s10"))
	kit.Equal(t, "are left", len(documentsOf(t, db)), 0)
}

// The first introduction of a session stands; old ones go, but not those of sessions with documents.
func TestIntroductions(t *testing.T) {
	db := open(t, state.Options{})
	for i, session := range []string{"a", "b", "c", "d"} {
		_, err := db.Introductions.Introduce(t.Context(), Introduction{Session: session, Name: "name of " + session, Cwd: "/w", At: int64(10 * (i + 1))})
		kit.Require(t, err == nil, "%v", err)
	}
	again, err := db.Introductions.Introduce(t.Context(), Introduction{Session: "a", Name: "another", Cwd: "/x", At: 99})
	want := (Introduction{Session: "a", Name: "name of a", Cwd: "/w", At: 10})
	kit.Check(t, err == nil && again == want, "a second introduction: %+v %v, want %+v", again, err, want)
	for _, x := range []struct{ untold, want bool }{{true, true}, {true, true}, {false, false}, {true, false}} {
		i, err := db.Introductions.Introduce(t.Context(), Introduction{Session: "told", Name: "n", Cwd: "/w", At: 100, NotShown: x.untold})
		kept, found, e := db.Introductions.Get(t.Context(), "told")
		kit.Check(t, err == nil && e == nil && found && i == kept && kept.NotShown == x.want,
			"introduced with %v: %+v, and stored is %+v, %v, %v", x.untold, i, kept, err, e)
	}
	again, err = db.Introductions.Introduce(t.Context(), Introduction{Session: "a", Cwd: "/x", NotShown: true})
	kit.Check(t, err == nil && !again.NotShown, "what an older version stored was told: %+v, %v", again, err)
	kit.Must(t, deriveOne(t, db, Derivation{Documents: []Document{{Session: "b", Path: "x"}}}))
	kit.Must(t, db.Introductions.Forget(t.Context(), 35))
	for session, want := range map[string]bool{"a": false, "b": true, "c": false, "d": true, "": false, "zz": false} {
		_, found, err := db.Introductions.Get(t.Context(), session)
		kit.Check(t, err == nil && found == want, "introduction of %q: %v %v, want %v", session, found, err, want)
	}
	kit.Must(t, db.Documents.Drop(t.Context(), "d"))
	_, found, _ := db.Introductions.Get(t.Context(), "d")
	kit.Check(t, !found, "an introduction outlives its session")
}

// What Claude asks for comes in the order of its lines, outlives a restart, and goes when it is done, or with its
// session.
func TestLinkRequests(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	db := open(t, state.Options{Path: path})
	commit(t, db, advance(1, 0, 3, 10))
	asks := []LinkRequest{
		{Session: "s1", Line: 9, Tool: "b", Link: true, Path: "docs/spec.md", Base: "/w"},
		{Session: "s1", Line: 300, Tool: "a", Path: "docs/spec.md"},
		{Session: "s2", Line: 1, Tool: "c", Path: "x"},
	}
	kit.Must(t, deriveOne(t, db, Derivation{File: 1, LinkRequests: []LinkRequest{asks[2], asks[1], asks[0]}, Documents: []Document{{Session: "s1", Path: "a"}}}))
	closeNow(t, db)
	db = open(t, state.Options{Path: path})
	diff := cmp.Diff(asks, linkRequestsOf(t, db))
	kit.Check(t, diff == "", "asks (-want +got):\n%s", diff)
	done, never := asks[0], asks[0]
	done.Done, never.Done, never.Line = true, true, 77
	kit.Must(t, deriveOne(t, db, Derivation{LinkRequests: []LinkRequest{done, never}}))
	diff = cmp.Diff(asks[1:], linkRequestsOf(t, db))
	kit.Check(t, diff == "", "asks (-want +got):\n%s", diff)
	kit.Must(t, db.Documents.Drop(t.Context(), "s1"))
	diff = cmp.Diff(asks[2:], linkRequestsOf(t, db))
	kit.Check(t, diff == "", "asks (-want +got):\n%s", diff)
	kit.Equal(t, "is left", len(documentsOf(t, db)), 0)
}
