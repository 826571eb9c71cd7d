package store_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// paperHead is what a daemon of machine m says of a session.
func paperHead(session, epoch string) server.Head {
	return server.Head{SessionID: session, Machine: "m", Host: "h", Epoch: epoch, ProjectHash: "ph", Project: "shop", Cwd: "/w"}
}

func putCheckpoints(t *testing.T, st full, owner int64, session, epoch string, list ...server.Checkpoint) {
	t.Helper()
	b := &server.CheckpointBatch{Head: paperHead(session, epoch), Owner: owner, List: list, Received: start}
	kit.Must(t, st.PutCheckpoints(t.Context(), b))
}

func mark(id string, minute int) server.Checkpoint {
	return server.Checkpoint{ID: id, TokensUsed: 80, TokenBudget: 100, Trigger: "auto_80", ContextHash: "c", Summary: "요약 \"x\" of " + id,
		ActiveFiles: []string{"a.go", "ü b.go"}, Created: start.Add(time.Duration(minute) * time.Minute), Generation: 1, Line: 7}
}

// version is an event with a content that comes with it.
func version(path string, n int64, change, content string) server.DocumentEvent {
	sum := sha256.Sum256([]byte(content))
	return server.DocumentEvent{Path: path, Change: change, By: "user", AddedAt: start, At: start.Add(time.Duration(n) * time.Second),
		Version: n, Size: int64(len(content)), SHA256: sum[:], Content: []byte(content), Line: -1}
}

func putDocuments(t *testing.T, st full, owner int64, session, epoch string, events ...server.DocumentEvent) {
	t.Helper()
	b := &server.DocumentBatch{Head: paperHead(session, epoch), Owner: owner, Events: events, Received: start}
	kit.Must(t, st.PutDocuments(t.Context(), b))
}

func ofSession(session string) server.Ref { return server.Ref{SessionID: session} }

func documents(t *testing.T, st full, session string) []server.Document {
	t.Helper()
	return kit.Try(st.Documents(t.Context(), all, ofSession(session))).Must(t)
}

// history is a document's versions, the oldest first, as "N change by: content".
func history(t *testing.T, st full, session, path string) (out []string) {
	t.Helper()
	list := kit.Try(st.Versions(t.Context(), all, ofSession(session), path, server.VersionPage{Limit: 1000})).Must(t)
	for i := len(list.List) - 1; i >= 0; i-- {
		v := list.List[i]
		content := "-"
		if _, from, err := st.Content(t.Context(), all, ofSession(session), path, v.N); err == nil {
			b, err := io.ReadAll(from)
			kit.Should(t, err)
			content = string(b)
		} else if !errors.Is(err, server.ErrNoContent) || v.Stored {
			t.Errorf("version %d: %v", v.N, err)
		}
		out = append(out, fmt.Sprintf("%d %s %s: %s", v.N, v.Change, v.By, content))
	}
	return out
}

func (s suite) checkpoints(t *testing.T) {
	st := s.open(t)
	ann := addUser(t, st, "ann", server.Member)
	for range 2 {
		putCheckpoints(t, st, ann.ID, "s", "e1", mark("cp-1", 1), mark("cp-2", 2))
	}
	newer := mark("cp-1", 1)
	newer.Summary, newer.ActiveFiles = "newer", nil
	putCheckpoints(t, st, ann.ID, "s", "e2", newer)
	putCheckpoints(t, st, ann.ID, "s", "e1", mark("cp-1", 1)) // late: its epoch is over
	list, err := st.Checkpoints(t.Context(), server.Scope{User: ann.ID}, server.CheckpointQuery{Session: "s", Limit: 10})
	kit.Require(t, err == nil && list.Next == "" && len(list.List) == 2, "%+v, %v", list, err)
	want := mark("cp-2", 2)
	want.Stream, want.SessionID, want.Machine, want.Owner = list.List[0].Stream, "s", "m", ann.ID
	kit.Equal(t, "the later one", list.List[0], want)
	c := list.List[1]
	kit.Check(t, c.Summary == "newer" && len(c.ActiveFiles) == 0, "the newer epoch's does not stand: %+v", c)
	kit.Equal(t, "by id", kit.Try(st.Checkpoint(t.Context(), server.Scope{User: ann.ID}, "cp-2", 0)).Must(t), want)
	for _, id := range append(hostile, "cp-3", "") {
		kit.Err(t, id, server.ErrNotFound)(st.Checkpoint(t.Context(), all, id, 0))
	}
	kit.Err(t, "of a session that is not there", server.ErrNotFound)(st.Checkpoints(t.Context(), all, server.CheckpointQuery{Ref: &server.Ref{SessionID: "no"}, Limit: 1}))
}

func (s suite) checkpointPages(t *testing.T) {
	st := s.open(t)
	var want, got []string
	for i := range 25 {
		id := fmt.Sprintf("cp-%02d", i)
		putCheckpoints(t, st, 1, "s", "e", mark(id, i/5)) // five at each moment
		want = append([]string{id}, want...)
	}
	for q := (server.CheckpointQuery{Limit: 7}); ; {
		page := kit.Try(st.Checkpoints(t.Context(), all, q)).Must(t)
		got = append(got, kit.Each(page.List, func(c server.Checkpoint) string { return c.ID })...)
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	kit.Equal(t, "pages", got, want)
	for _, after := range []string{"x", "5", "-", "1-x"} {
		kit.Err(t, "after "+after,
			server.ErrBadPage)(st.Checkpoints(t.Context(), all, server.CheckpointQuery{After: after, Limit: 1}))
	}
}

// artifactsFirst: a session may have artifacts before it has a line. It is no session until then, and one after.
func (s suite) artifactsFirst(t *testing.T) {
	st := s.open(t)
	putDocuments(t, st, 1, "s", "e", version("a", 1, server.Linked, "x"))
	putCheckpoints(t, st, 1, "s", "e", mark("cp", 1))
	kit.Equal(t, "found", kit.Try(st.Find(t.Context(), all, server.SessionQuery{Page: server.Page{Limit: 10}, Agents: true})).Must(t).List, nil)
	kit.Equal(t, "groups", kit.Try(st.Groups(t.Context(), all, server.GroupQuery{})).Must(t).List, nil)
	for range 2 {
		kit.Gives(t, "streams are to be derived", int64(0))(st.Lag(t.Context()))
		kit.Must(t, st.ResetDerived(t.Context()))
	}
	kit.Equal(t, "its document can't be seen", len(documents(t, st, "s")), 1)
	put(t, st, batch("s", object(0, "{}")),
		func(b *server.Batch) { b.Owner, b.Head.Epoch, b.Head.Cwd = 1, "e", "/elsewhere" })
	found, err := st.Find(t.Context(), all, server.SessionQuery{Page: server.Page{Limit: 10}, Agents: true})
	kit.Require(t, err == nil && len(found.List) == 1 && found.List[0].Project == "shop" && found.List[0].Cwd == "/elsewhere",
		"%+v, %v", found, err)
	kit.Gives(t, "streams are to be derived", int64(1))(st.Lag(t.Context()))
	putDocuments(t, st, 1, "s", "e", version("a", 2, server.Modified, "y"))
	after := kit.Try(st.Find(t.Context(), all, server.SessionQuery{Page: server.Page{Limit: 10}, Agents: true})).Must(t)
	kit.Equal(t, "artifacts change nothing about a session", after, found)
	kit.Equal(t, "tasks", len(lease(t, st)), 1)
}

// artifactScopes: what a scope does not allow is not there, and a share includes documents only when it is made so.
func (s suite) artifactScopes(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	ann, bob := members(t, st)
	eve := addUser(t, st, "eve", server.Viewer)
	putDocuments(t, st, ann.ID, "anns", "e", version("a.md", 1, server.Linked, "secret"))
	putCheckpoints(t, st, ann.ID, "anns", "e", mark("cp", 1))
	result, paper := upload(t, st, ann.ID, "anns", "tool-results/t.txt", []byte("long result")), upload(t, st, ann.ID, "anns", "a.md", []byte("long document"))
	disguised := upload(t, st, ann.ID, "anns", "tool-results/a.md", []byte("secret")) // a document's content by another name
	type sees struct{ session, docs bool }
	check := func(when string, scope server.Scope, want sees) {
		t.Helper()
		is := func(what string, err error, want bool) {
			t.Helper()
			kit.Check(t, (err == nil) == want && (err == nil || errors.Is(err, server.ErrNotFound)), "%s: %s: %v", when, what, err)
		}
		ref := ofSession("anns")
		_, err := st.Checkpoint(ctx, scope, "cp", 0)
		is("checkpoint", err, want.session)
		page, err := st.Checkpoints(ctx, scope, server.CheckpointQuery{Session: "anns", Limit: 5})
		kit.Check(t, err == nil && (len(page.List) == 1) == want.session, "%s: checkpoints: %+v, %v", when, page, err)
		_, err = st.Documents(ctx, scope, ref)
		is("documents", err, want.docs)
		_, err = st.Versions(ctx, scope, ref, "a.md", server.VersionPage{Limit: 1})
		is("versions", err, want.docs)
		_, _, err = st.Content(ctx, scope, ref, "a.md", 1)
		is("content", err, want.docs)
		_, err = st.LinkRequests(ctx, scope, ref)
		is("link requests", err, want.docs)
		blobs, err := st.Blobs(ctx, scope, ref)
		is("blobs", err, want.session)
		n := len(blobs)
		kit.Check(t, (!want.docs || n == 3) && (want.docs || !want.session || n == 1), "%s: %d blobs", when, n)
		_, _, err = st.BlobContent(ctx, scope, result)
		is("a tool's result", err, want.session)
		_, _, err = st.BlobContent(ctx, scope, paper)
		is("a document as a file", err, want.docs)
		_, _, err = st.BlobContent(ctx, scope, disguised)
		is("a document's content as a file", err, want.docs)
	}
	check("nobody", server.Scope{}, sees{})
	check("bob", server.Scope{User: bob.ID}, sees{})
	check("eve", server.Scope{User: eve.ID}, sees{})
	check("ann", server.Scope{User: ann.ID}, sees{true, true})
	check("an owner", all, sees{true, true})
	share := server.Share{Owner: ann.ID, With: eve.ID, ProjectHash: "ph", Project: "shop", Created: start}
	for _, documents := range []bool{false, true, false} {
		share.Documents = documents
		kit.Must(t, st.AddShare(ctx, share))
		check(fmt.Sprintf("shared with documents %v", documents), server.Scope{User: eve.ID}, sees{true, documents})
	}
	kit.Err(t, "a reader may request a link", server.ErrNotFound)(st.RequestLink(ctx, server.Scope{User: eve.ID}, ofSession("anns"), server.LinkRequestInput{Path: "b.md", Link: true, By: eve.ID, At: start}))
	// Another one's session of the same name, with a document of the same content, is another.
	putDocuments(t, st, bob.ID, "anns", "e", version("a.md", 1, server.Linked, "secret"), version("b.md", 1, server.Linked, "bob's"))
	list, err := st.Documents(ctx, server.Scope{User: ann.ID}, ofSession("anns"))
	kit.Check(t, err == nil && len(list) == 1, "%+v, %v", list, err)
}

// artifactsStay: artifacts are not derived, and survive a restart.
func (s suite) artifactsStay(t *testing.T) {
	st := s.open(t)
	putDocuments(t, st, 1, "s", "e", version("a", 1, server.Linked, "one"))
	putCheckpoints(t, st, 1, "s", "e", mark("cp", 1))
	sum := upload(t, st, 1, "s", "tool-results/t.txt", bytes.Repeat([]byte("x"), 3<<20))
	kit.Must(t, st.ResetDerived(t.Context()))
	st = s.reopen(t, st)
	kit.Equal(t, "versions", history(t, st, "s", "a"), []string{"1 linked user: one"})
	kit.Equal(t, "the checkpoint", kit.Try(st.Checkpoint(t.Context(), all, "cp", 0)).Must(t).Summary, mark("cp", 1).Summary)
	b, from, err := st.BlobContent(t.Context(), all, sum)
	kit.Require(t, err == nil && b.Size == 3<<20 && b.Name == "tool-results/t.txt" && b.SessionID == "s", "%+v, %v", b, err)
	got := sha256.New()
	kit.Equal(t, "bytes", kit.Try(io.Copy(got, from)).Must(t), 3<<20)
	kit.Equal(t, "their hash", fmt.Sprintf("%x", got.Sum(nil)), sum)
}
