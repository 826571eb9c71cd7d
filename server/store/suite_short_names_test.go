package store_test

import (
	"errors"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

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
