package store_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

func (s suite) documents(t *testing.T) {
	st := s.open(t)
	big := server.DocumentEvent{Path: "a.md", Change: server.Modified, By: "claude", At: start.Add(time.Minute), Version: 3, Size: 1 << 40, TooLarge: true, Line: 4}
	events := []server.DocumentEvent{
		version("a.md", 1, server.Linked, "one"), version("a.md", 2, server.Modified, ""), big,
		version("문서/b.md", 1, server.Linked, "one"),
		{Path: "문서/b.md", Change: server.Deleted, By: "other", At: start.Add(time.Minute), Version: 2, Line: -1,
			Size: 3, SHA256: version("", 1, "", "one").SHA256}, // still says what it was
	}
	for range 2 { // the same again changes nothing
		putDocuments(t, st, 1, "s", "e", events...)
	}
	kit.Equal(t, "versions", history(t, st, "s", "a.md"), []string{"1 linked user: one", "2 modified user: ", "3 modified claude: -"})
	kit.Equal(t, "versions", history(t, st, "s", "문서/b.md"), []string{"1 linked user: one", "2 deleted other: -"})
	list := documents(t, st, "s")
	kit.Require(t, len(list) == 2, "%+v", list)
	kit.Equal(t, "a document", list[0], server.Document{Path: "a.md", Linked: true, AddedAt: start, AddedBy: "user",
		ChangedAt: start.Add(time.Minute), ChangedBy: "claude", Versions: 3, Size: 1 << 40, TooLarge: true, SessionID: "s", Machine: "m", Host: "h"})
	d := list[1]
	kit.Check(t, d.Deleted && d.Linked && d.Versions == 2 && !d.Stored && d.SHA256 == "" && d.Size == 0, "a deleted document: %+v", d)
	unlink := server.DocumentEvent{Path: "a.md", Change: server.Unlinked, By: "user", At: start.Add(2 * time.Minute), Version: 3, Line: -1}
	again := version("a.md", 4, server.Linked, "two")
	again.At, again.AddedAt = start.Add(3*time.Minute), start.Add(3*time.Minute)
	putDocuments(t, st, 1, "s", "e", unlink)
	d = documents(t, st, "s")[0]
	kit.Check(t, !d.Linked && d.UnlinkedAt.Equal(unlink.At) && d.Versions == 3, "unlinked: %+v", d)
	putDocuments(t, st, 1, "s", "e", again)
	d = documents(t, st, "s")[1]
	kit.Check(t, d.Path == "a.md" && d.Linked && d.AddedAt.Equal(again.At) && d.Versions == 4 && d.Stored, "linked again: %+v", d)
	for _, n := range []int64{5, 1 << 60} {
		kit.Err(t, fmt.Sprint("version ", n), server.ErrNotFound)(st.Content(t.Context(), all, ofSession("s"), "a.md", n))
	}
	v, from, err := st.Content(t.Context(), all, ofSession("s"), "a.md", 0)
	kit.Require(t, err == nil && v.N == 4, "the newest: %+v, %v", v, err)
	kit.Equal(t, "its content", string(kit.Try(io.ReadAll(from)).Must(t)), "two")
}

// documentOrder: events that come late or in another order end as they would have in order.
func (s suite) documentOrder(t *testing.T) {
	st := s.open(t)
	unlink := server.DocumentEvent{Path: "a", Change: server.Unlinked, By: "user", At: start.Add(time.Minute), Version: 3, Line: -1}
	putDocuments(t, st, 1, "s", "e", unlink)
	putDocuments(t, st, 1, "s", "e", version("a", 3, server.Modified, "three"))
	putDocuments(t, st, 1, "s", "e", version("a", 1, server.Linked, "one"))
	putDocuments(t, st, 1, "s", "e", version("a", 2, server.Modified, "two"))
	kit.Equal(t, "versions", history(t, st, "s", "a"), []string{"1 linked user: one", "2 modified user: two", "3 modified user: three"})
	d := documents(t, st, "s")[0]
	kit.Check(t, !d.Linked && d.Versions == 3, "%+v", d)
	// One number with two contents in one epoch (a state was restored): the later one shows, the other one is kept.
	putDocuments(t, st, 1, "s", "e", version("a", 2, server.Modified, "other two"))
	kit.Equal(t, "versions", history(t, st, "s", "a")[1], "2 modified user: other two")
}

// documentEpochs: a daemon without its state counts from 1 again; its versions follow those before.
func (s suite) documentEpochs(t *testing.T) {
	st := s.open(t)
	putDocuments(t, st, 1, "s", "e1", version("a", 1, server.Linked, "one"), version("a", 2, server.Modified, "two"))
	putDocuments(t, st, 1, "s", "e2", version("a", 1, server.Linked, "three"), version("a", 2, server.Modified, "four"))
	putDocuments(t, st, 1, "s", "e1", version("a", 2, server.Modified, "two")) // late
	kit.Equal(t, "versions", history(t, st, "s", "a"),
		[]string{"1 linked user: one", "2 modified user: two", "3 linked user: three", "4 modified user: four"})
	for before, want := range map[int64][]int64{0: {4, 3}, 4: {3, 2}, 3: {2, 1}, 2: {1}, 1: nil, 99: {4, 3}} {
		list := kit.Try(st.Versions(t.Context(), all, ofSession("s"), "a", server.VersionPage{Before: before, Limit: 2})).Must(t)
		got := kit.Each(list.List, func(v server.Version) int64 { return v.N })
		kit.Equal(t, fmt.Sprint("before ", before), got, want)
	}
}

// manyVersions: ten thousand, some of which are lost on the way.
func (s suite) manyVersions(t *testing.T) {
	st := s.open(t)
	const most = 10_000
	for n := int64(1); n <= most; n += 500 {
		var events []server.DocumentEvent
		for i := n; i < n+500; i++ {
			if i%100 != 50 {
				events = append(events, version("a", i, server.Modified, fmt.Sprint(i%7)))
			}
		}
		putDocuments(t, st, 1, "s", "e", events...)
	}
	d := documents(t, st, "s")[0]
	kit.Check(t, d.Versions == most && d.Stored, "%+v", d)
	seen, last := 0, int64(most+1)
	for p := (server.VersionPage{Limit: 1000}); ; {
		list := kit.Try(st.Versions(t.Context(), all, ofSession("s"), "a", p)).Must(t)
		for _, v := range list.List {
			kit.Require(t, v.N < last, "version %d behind %d", v.N, last)
			last = v.N
			seen++
		}
		if p.Before = list.Next; p.Before == 0 {
			break
		}
	}
	kit.Equal(t, "versions", seen, most-most/100)
	kit.Err(t, "a version that never came", server.ErrNotFound)(st.Content(t.Context(), all, ofSession("s"), "a", 50))
}

// documentNames: whatever the name of a document, it is that document's and no other's.
func (s suite) documentNames(t *testing.T) {
	st := s.open(t)
	names := append([]string{strings.Repeat("k/", 2047) + "kk", "회의록.md", "A.md", "a.md", "%2e%2e", "b\\..\\c", "a.md/versions"}, hostile...)
	for _, name := range names {
		putDocuments(t, st, 1, "s", "e", version(name, 1, server.Linked, "of "+name))
	}
	kit.Equal(t, "documents", len(documents(t, st, "s")), len(names))
	for _, name := range names {
		_, from, err := st.Content(t.Context(), all, ofSession("s"), name, 1)
		if err != nil {
			t.Errorf("%.50q: %v", name, err)
			continue
		}
		b, err := io.ReadAll(from)
		kit.Check(t, err == nil && string(b) == "of "+name, "%.50q: %.50q, %v", name, b, err)
	}
	kit.Err(t, "a document that is", server.ErrNotFound)(st.Content(t.Context(), all, ofSession("s"), "B.md", 1))
}

func requestLink(t *testing.T, st full, user int64, path string, link bool) server.LinkRequest {
	t.Helper()
	w := kit.Try(st.RequestLink(t.Context(), server.Scope{User: user}, ofSession("s"), server.LinkRequestInput{Path: path, Link: link, By: user, At: start})).Must(t)
	return w
}

func (s suite) linkRequests(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	ann, bob := addUser(t, st, "ann", server.Member), addUser(t, st, "bob", server.Member)
	put(t, st, batch("s", object(0, "{}")), func(b *server.Batch) { b.Owner = ann.ID })
	put(t, st, batch("bare", object(0, "{}")),
		func(b *server.Batch) { b.Owner, b.Head.Machine, b.Head.Epoch = ann.ID, "", "" })
	first := requestLink(t, st, ann.ID, "a.md", true)
	kit.Equal(t, fmt.Sprintf("the same link request twice: %+v", first), requestLink(t, st, ann.ID, "a.md", true).ID, first.ID)
	opposite := requestLink(t, st, ann.ID, "b.md", true)
	back := requestLink(t, st, ann.ID, "b.md", false)
	asked, err := st.PendingLinkRequests(ctx, ann.ID, "m")
	kit.Check(t, err == nil && len(asked) == 2 && asked[0].ID == first.ID && asked[1].ID == back.ID && !asked[1].Link &&
		opposite.ID != back.ID, "%+v, %v", asked, err)
	for _, other := range []struct {
		owner   int64
		machine string
	}{{bob.ID, "m"}, {ann.ID, "other"}, {ann.ID, ""}} {
		kit.Equal(t, fmt.Sprintf("%+v is asked", other), kit.Try(st.PendingLinkRequests(ctx, other.owner, other.machine)).Must(t), nil)
	}
	refused := server.DocumentEvent{Path: "a.md", Change: server.Refused, By: "viewer", At: start, LinkRequest: first.ID, Reason: "no such file", Line: -1}
	putDocuments(t, st, bob.ID, "s", "e", refused) // another one's session of that name
	putDocuments(t, st, ann.ID, "other", "e", refused)
	if asked, err := st.PendingLinkRequests(ctx, ann.ID, "m"); err != nil || len(asked) != 2 {
		t.Errorf("who is not asked can answer: %+v, %v", asked, err)
	}
	done := server.DocumentEvent{Path: "b.md", Change: server.Unlinked, By: "viewer", At: start, LinkRequest: back.ID, Line: -1}
	for range 2 {
		putDocuments(t, st, ann.ID, "s", "e", refused, done)
	}
	list, err := st.LinkRequests(ctx, server.Scope{User: ann.ID}, ofSession("s"))
	kit.Check(t, err == nil && len(list) == 2 && list[0].State == server.LinkRequestDone &&
		list[1].State == server.LinkRequestRefused && list[1].Reason == "no such file" &&
		list[1].Answered.Equal(start) && list[1].By == ann.ID && list[1].Machine == "m", "%+v, %v", list, err)
	docs, err := st.Documents(ctx, server.Scope{User: ann.ID}, ofSession("s"))
	kit.Check(t, err == nil && len(docs) == 1 && docs[0].Path == "b.md", "a refusal made a document: %+v, %v", docs, err)
	for path, want := range map[string]error{
		"../x": server.ErrBadPath, "/etc/passwd": server.ErrBadPath, "a/../../x": server.ErrBadPath, "": server.ErrBadPath,
		".": server.ErrBadPath, "a\x00b": server.ErrBadPath, "a//b": server.ErrBadPath, "\xff": server.ErrBadPath,
		strings.Repeat("x", 5000): server.ErrBadPath, "회의/노트.md": nil, "%2e%2e/x": nil,
	} {
		_, err := st.RequestLink(ctx, server.Scope{User: ann.ID}, ofSession("s"), server.LinkRequestInput{Path: path, Link: true, By: ann.ID, At: start})
		kit.Check(t, errors.Is(err, want), "%.20q: %v", path, err)
	}
	kit.Err(t, "of a bare client", server.ErrNoDaemon)(st.RequestLink(ctx, all, ofSession("bare"), server.LinkRequestInput{Path: "a", By: ann.ID, At: start}))
	kit.Err(t, "of another one's session", server.ErrNotFound)(st.RequestLink(ctx, server.Scope{User: bob.ID}, server.Ref{Stream: 1}, server.LinkRequestInput{Path: "a", By: bob.ID, At: start}))
}

func (s suite) manyLinkRequests(t *testing.T) {
	st := s.open(t)
	putCheckpoints(t, st, 1, "s", "e", mark("cp", 1))
	for i := range server.MaxLinkRequests {
		requestLink(t, st, 1, fmt.Sprint("doc", i), true)
	}
	kit.Err(t, "one more", server.ErrTooManyLinkRequests)(st.RequestLink(t.Context(), all, ofSession("s"), server.LinkRequestInput{Path: "more", Link: true, At: start}))
	requestLink(t, st, 1, "doc3", false) // takes the place of its opposite
}
