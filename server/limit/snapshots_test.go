package limit

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/sqlite"
)

// TestSnapshotsOfOne: one user's slow downloads leave snapshots to others, and so do those of the links that a user
// made. A slot that is given back is free again.
func TestSnapshotsOfOne(t *testing.T) {
	st, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "server.db"))
	kit.Must(t, err)
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	users := map[string]server.User{}
	for _, name := range []string{"ann", "bob"} {
		u, err := st.AddUser(t.Context(), name, server.Member, server.By{At: time.Now()})
		kit.Must(t, err)
		users[name] = u
		b := &server.Batch{Owner: u.ID, Received: time.Now(), Lines: []server.Line{{Raw: []byte("{}")}},
			Head: server.Head{SessionID: "s", Machine: "m", Epoch: "e", EndLine: 1}}
		kit.Must(t, st.Put(t.Context(), b))
	}
	f := NewFair(st)
	f.Patience = 20 * time.Millisecond
	open := func(scope server.Scope) server.Snapshot {
		t.Helper()
		snap, err := f.View(t.Context(), scope, server.Ref{SessionID: "s", Owner: users["ann"].ID})
		if err != nil && !errors.Is(err, server.ErrBusy) {
			t.Fatal(err)
		}
		return snap
	}
	var held []server.Snapshot
	for len(held) < 100 {
		snap := open(server.Scope{All: true, User: users["ann"].ID})
		if snap == nil {
			break
		}
		held = append(held, snap)
	}
	if len(held) > 4 {
		t.Errorf("one user has %d snapshots", len(held))
	}
	if snap := open(server.Scope{Only: held[0].Session().ID, User: users["ann"].ID}); snap != nil {
		t.Error("a link of the same user opens another")
		held = append(held, snap)
	}
	for _, scope := range []server.Scope{{All: true, User: users["bob"].ID}, {All: true}} {
		snap := open(scope)
		if snap == nil {
			t.Errorf("%+v gets none", scope)
			continue
		}
		held = append(held, snap)
	}
	for _, snap := range held {
		if err := snap.Close(); err != nil {
			t.Error(err)
		}
	}
	if snap := open(server.Scope{All: true, User: users["ann"].ID}); snap == nil {
		t.Error("places are not given back")
	} else if err := snap.Close(); err != nil {
		t.Error(err)
	}
}
