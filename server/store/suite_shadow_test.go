package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// shadows: bob sends, after ann, what has the names of ann's. No method takes bob's for ann's.
func (s suite) shadows(t *testing.T) {
	st := s.open(t)
	ann, bob := addUser(t, st, "ann", server.Member), addUser(t, st, "bobby", server.Member)
	for i, u := range []server.User{ann, bob} {
		at := start.Add(time.Duration(i) * time.Hour)
		for gen, session := range []string{"s", "s", "s/agent-1"} {
			b := batch(session, object(0, `{"of":"`+u.Name+`"}`))
			b.Owner, b.Received, b.Head.Generation = u.ID, at, int64(gen)
			if session != "s" {
				b.Head.Parent = "s"
			}
			put(t, st, b)
		}
		putDocuments(t, st, u.ID, "s", "e", version("a.md", 1, server.Linked, u.Name))
		putCheckpoints(t, st, u.ID, "s", "e", mark("cp", i))
	}
	deriveAll(t, st)
	reads := s.shadowReads(t.Context(), st)
	for name, read := range reads {
		_, err := read(all, server.Ref{SessionID: "s"})
		no, ok := errors.AsType[*server.AmbiguousError](err)
		if !ok || no.Session != "s" || len(no.Choices) != 2 {
			t.Errorf("%s of s: %v %+v, want a choice of two", name, err, no)
			continue
		}
		a, b := no.Choices[0], no.Choices[1]
		kit.Check(t, (a.Owner == bob.ID || name == "forget") && a.Owner+b.Owner == ann.ID+bob.ID && (a.SessionID == "s" ||
			name == "forget"), "%s of s: choices are %+v", name, no.Choices)
		kit.Err(t, name+" of s by a stranger", server.ErrNotFound)(read(server.Scope{User: 999}, server.Ref{SessionID: "s"}))
	}
	for name, read := range reads {
		for _, u := range []server.User{ann, bob} {
			if name == "forget" {
				continue
			}
			kit.Gives(t, fmt.Sprintf("%s of %s's s", name, u.Name), u.ID)(read(all, server.Ref{SessionID: "s", Owner: u.ID}))
			// Own comes first, for an owner too.
			kit.Gives(t, fmt.Sprintf("%s of %s's own s", name, u.Name),
				u.ID)(read(server.Scope{All: true, User: u.ID}, server.Ref{SessionID: "s"}))
		}
	}
	kit.Gives(t, "by name", ann.ID)(reads["view"](all, server.Ref{SessionID: "s", User: "ann"}))
	kit.Err(t, "of nobody", server.ErrNotFound)(reads["view"](all, server.Ref{SessionID: "s", User: "nobody"}))
	kit.Gives(t, "forget ann's", ann.ID)(reads["forget"](all, server.Ref{SessionID: "s", Owner: ann.ID}))
	expectNames(t, "what is left", names(t, st, all, server.SessionQuery{Agents: true}), "s", "s/agent-1")
	kit.Gives(t, "the only one left", bob.ID)(reads["view"](all, server.Ref{SessionID: "s"}))
}

type shadowRead func(server.Scope, server.Ref) (owner int64, err error)

// shadowReads are the methods that take a session's name. Each answers whose session it took.
func (s suite) shadowReads(ctx context.Context, st full) map[string]shadowRead {
	return map[string]shadowRead{
		"view": func(scope server.Scope, ref server.Ref) (int64, error) {
			snap, err := st.View(ctx, scope, ref)
			if err != nil {
				return 0, err
			}
			return snap.Session().Owner, snap.Close()
		},
		"resolve": func(scope server.Scope, ref server.Ref) (int64, error) {
			x, err := st.Resolve(ctx, scope, ref)
			return x.Owner, err
		},
		"documents": func(scope server.Scope, ref server.Ref) (int64, error) {
			list, err := st.Documents(ctx, scope, ref)
			if err != nil {
				return 0, err
			}
			u, err := st.FindUser(ctx, map[bool]string{true: "ann", false: "bobby"}[list[0].Size == 3])
			return u.ID, err
		},
		"checkpoints": func(scope server.Scope, ref server.Ref) (int64, error) {
			page, err := st.Checkpoints(ctx, scope, server.CheckpointQuery{Ref: &ref, Limit: 9})
			if err != nil {
				return 0, err
			}
			return page.List[0].Owner, nil
		},
		"forget": func(scope server.Scope, ref server.Ref) (int64, error) {
			gone, err := st.Forget(ctx, scope, ref.SessionID, ref.Owner, start)
			return gone.Owner, err
		},
	}
}

// shortNames: a session is named by the beginning of its id as far as the reader's other sessions ask for it, and what
// the reader may not see neither lengthens a name nor answers to one.
func (s suite) shortNames(t *testing.T) {
	st := s.open(t)
	ann, bob := addUser(t, st, "ann", server.Member), addUser(t, st, "bobby", server.Member)
	const (
		first  = "1e0a84da-0000-4000-8000-000000000001"
		second = "1e0a84da-7000-4000-8000-000000000002"
		alone  = "77777777-0000-4000-8000-000000000003"
		hidden = "77777777-1000-4000-8000-000000000004"
	)
	send := func(u server.User, machine, id, parent string) {
		put(t, st, batch(id, object(0, `{"of":"`+u.Name+`"}`)),
			func(b *server.Batch) { b.Owner, b.Head.Parent, b.Head.Machine = u.ID, parent, machine })
	}
	send(ann, "m", first, "")
	send(ann, "m", second, "")
	send(ann, "m", alone, "")
	send(ann, "m", alone+"/agent-1", alone)
	send(bob, "m", hidden, "")
	send(ann, "m", "short", "")
	send(ann, "m", "several", "")
	send(ann, "n", "several", "")
	hers := server.Scope{User: ann.ID}
	names, err := st.ShortNames(t.Context(), hers, []string{first, second, alone, hidden, "short", "several", "absent"})
	kit.Must(t, err)
	for id, want := range map[string]string{first: "1e0a84da-0", second: "1e0a84da-7", alone: "77777777", hidden: "", "short": "short",
		"several": "", "absent": ""} {
		kit.Equal(t, id+" is called", names[id], want)
	}
	names, err = st.ShortNames(t.Context(), all, []string{alone})
	kit.Check(t, err == nil && names[alone] == "77777777-0", "among all: %q, %v", names[alone], err)
	for prefix, want := range map[string]string{"1e0a84da-7": second, "7777": alone, alone: alone, "77777777/agent-1": alone + "/agent-1",
		"shor": "short"} {
		x, err := st.Resolve(t.Context(), hers, server.Ref{SessionID: prefix, Prefix: true})
		kit.Check(t, err == nil && x.SessionID == want, "%s is %q, %v", prefix, x.SessionID, err)
	}
	for _, prefix := range []string{"777", "", "77777777-1", "7777 ", "%", "7777~", "ÿÿÿÿ", "77777777/agent-2", "/agent-1"} {
		kit.Err(t, prefix+" is",
			server.ErrNotFound)(st.Resolve(t.Context(), hers, server.Ref{SessionID: prefix, Prefix: true}))
	}
	kit.Err(t, "without Prefix", server.ErrNotFound)(st.Resolve(t.Context(), hers, server.Ref{SessionID: "1e0a84da"}))
	_, err = st.Resolve(t.Context(), hers, server.Ref{SessionID: "1e0a84da", Prefix: true})
	no, ok := errors.AsType[*server.AmbiguousError](err)
	kit.Check(t, ok && len(no.Choices) == 2 && no.Choices[0].SessionID != no.Choices[1].SessionID, "the beginning of two: %+v, %v", no, err)
}
