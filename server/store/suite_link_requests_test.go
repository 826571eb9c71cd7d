package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

func requestLink(t *testing.T, st full, user int64, path string, link bool) server.LinkRequest {
	t.Helper()
	w := kit.Try(st.RequestLink(t.Context(), server.Scope{User: user}, ofSession("s"), server.LinkRequestInput{Path: path, Link: link, By: user, At: start})).Must(t)
	return w
}

func (s suite) linkRequests(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	ann, bob := addUser(t, st, "ann", server.Member), addUser(t, st, "bob", server.Member)
	b := batch("s", object(0, "{}"))
	b.Owner = ann.ID
	put(t, st, b)
	bare := batch("bare", object(0, "{}"))
	bare.Owner, bare.Head.Machine, bare.Head.Epoch = ann.ID, "", ""
	put(t, st, bare)
	first := requestLink(t, st, ann.ID, "a.md", true)
	kit.Equal(t, fmt.Sprintf("the same link request twice: %+v", first), requestLink(t, st, ann.ID, "a.md", true).ID,
		first.ID)
	opposite := requestLink(t, st, ann.ID, "b.md", true)
	back := requestLink(t, st, ann.ID, "b.md", false)
	asked, err := st.PendingLinkRequests(ctx, ann.ID, "m")
	kit.Check(t, err == nil && len(asked) == 2 && asked[0].ID == first.ID && asked[1].ID == back.ID && !asked[1].Link &&
		opposite.ID != back.ID, "%+v, %v", asked, err)
	for _, other := range []struct {
		owner   int64
		machine string
	}{{bob.ID, "m"}, {ann.ID, "other"}, {ann.ID, ""}} {
		list, err := st.PendingLinkRequests(ctx, other.owner, other.machine)
		kit.Check(t, err == nil && len(list) == 0, "%+v is asked %+v, %v", other, list, err)
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
	if docs, err := st.Documents(ctx, server.Scope{User: ann.ID}, ofSession("s")); err != nil || len(docs) != 1 || docs[0].Path != "b.md" {
		t.Errorf("a refusal made a document: %+v, %v", docs, err)
	}
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
