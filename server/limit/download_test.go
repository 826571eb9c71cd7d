package limit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlite"
)

// TestDownloadHoldsNothing: while a download's lines are written, the store can give all its snapshots to others, and what
// goes away meanwhile ends the download with an error.
func TestDownloadHoldsNothing(t *testing.T) {
	st, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "server.db"))
	kit.Must(t, err)
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	u, err := st.AddUser(t.Context(), "ann", server.Member, server.By{At: time.Now()})
	kit.Must(t, err)
	var want []server.Line
	for i := range 10 {
		raw := fmt.Appendf(nil, "{%q:%d}", bytes.Repeat([]byte("x"), 300<<10), i)
		want = append(want, server.Line{Index: int64(2 * i), Raw: raw})
	}
	b := &server.Batch{Owner: u.ID, Received: time.Now(), Lines: want,
		Head: server.Head{SessionID: "s", Machine: "m", Epoch: "e", EndLine: 20}}
	kit.Must(t, st.Put(t.Context(), b))
	scope, ref := server.Scope{User: u.ID}, server.Ref{SessionID: "s", Owner: u.ID}
	d, err := server.OpenDownload(t.Context(), st, scope, ref)
	kit.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	span := server.Span{From: 0, To: 20}
	n := 0
	err = d.Lines(t.Context(), span, func(l server.Line) error {
		if l.Index != want[n].Index || !bytes.Equal(l.Raw, want[n].Raw) {
			t.Errorf("line %d is %d with %d bytes", n, l.Index, len(l.Raw))
		}
		n++
		var others []server.Snapshot
		for other := range int64(8) { // all that SQLite gives at once; one more would wait
			snap, err := st.View(ctx, server.Scope{All: true, User: 100 + other}, ref)
			kit.Must(t, err)
			others = append(others, snap)
		}
		for _, snap := range others {
			if err := snap.Close(); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	if err != nil || n != len(want) {
		t.Errorf("%d lines, %v", n, err)
	}
	err = d.Lines(t.Context(), span, func(l server.Line) error {
		if l.Index > 0 {
			return nil
		}
		_, err := st.Forget(t.Context(), scope, "s", u.ID, time.Now())
		return err
	})
	if !errors.Is(err, server.ErrNotFound) {
		t.Errorf("a session that is forgotten meanwhile ends with %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
