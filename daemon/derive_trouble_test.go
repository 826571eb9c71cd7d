package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/state"
)

// An observer that fails undoes what is not stored, and hears the lines again.
func TestFailingObserver(t *testing.T) {
	w, o := newWorld(t), &onlooker{}
	a := chat{session: sessionA}
	d := w.startSeen(o)
	w.sync()
	w.write(transcriptOf(sessionA), a.prompt("one"))
	w.sync()
	w.take(o, "one!")
	o.mu.Lock()
	o.fail = errors.New("broken")
	o.mu.Unlock()
	w.write(transcriptOf(sessionA), a.prompt("two"))
	w.until("it was told", func() bool { o.mu.Lock(); defer o.mu.Unlock(); return len(o.seen) > 0 })
	o.mu.Lock()
	o.fail, o.seen = nil, nil
	o.mu.Unlock()
	w.until("it is told again", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.seen) > 0 && o.seen[len(o.seen)-1] == "two!"
	})
	w.until("all is well", d.derive.settled)
	if got := said(w.messages(sessionA)); len(got) != 3 { // with the result of the first turn
		t.Errorf("%q", got)
	}
}

// A disk that takes nothing for a while loses no effect, and makes none twice.
func TestStoreFailsForAWhile(t *testing.T) {
	w := newWorld(t)
	a := chat{session: sessionA}
	path := w.write(transcriptOf(sessionA), a.prompt("one"))
	w.start()
	w.sync()
	w.stop()
	failing := make(chan struct{})
	db, err := state.Open(t.Context(), state.Options{Path: filepath.Join(w.cfg.StateDir, "state.db"), Fault: func(step string) error {
		select {
		case <-failing:
			return nil
		default:
			if step == "put session" {
				return fmt.Errorf("no space: %w", os.ErrInvalid)
			}
			return nil
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	v := newDeriver(db, w.cfg.Log)
	all, err := db.Load(t.Context())
	if err != nil || len(all) != 1 || all[0].File.Path != path {
		t.Fatal(all, err)
	}
	id, size := all[0].File.ID, all[0].Cursor.Offset
	v.where, v.lineCap = whereNothing, 1<<20
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- v.run(ctx) }()
	err = v.visit(ctx, id, func(p *pass) error { p.keep(); return nil })
	if err == nil {
		t.Error("what could not be stored was said to be")
	}
	close(failing)
	w.until("it is stored", func() bool {
		u, _, err := db.Understood(t.Context(), id)
		return err == nil && u.Place.Offset == size
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A sync that waits, waits for what is followed to be understood: its rows are to be counted.
func TestSyncWaitsForUnderstanding(t *testing.T) {
	w, o := newWorld(t), &onlooker{gate: make(chan struct{})}
	a := chat{session: sessionA}
	w.write(transcriptOf(sessionA), a.prompt("one")+a.compaction())
	w.startSeen(o)
	r, err := w.client.Sync(context.Background(), control.SyncRequest{Wait: true, Timeout: "500ms"})
	if err != nil || r.Done || r.Reason != reasonTimeout {
		t.Errorf("while it is being folded: %+v %v", r, err)
	}
	close(o.gate)
	if r := w.sync(); !r.Done {
		t.Errorf("%+v", r)
	}
	w.expect(o, "history with a compaction", "one")
}

// A fold of another version is made anew, and what it had effects of has none again.
func TestOlderFold(t *testing.T) {
	w, o := newWorld(t), &onlooker{}
	a := chat{session: sessionA}
	w.startSeen(o)
	w.sync()
	w.write(transcriptOf(sessionA), a.prompt("one"))
	w.sync()
	w.stop()
	o.take()
	db := openTestState(t, w)
	for id := range loadFacts(t, db) {
		u, _, err := db.Understood(t.Context(), id)
		if err != nil || len(u.Fold) == 0 || u.Fold[0] != foldVersion {
			t.Fatalf("%+v %v", u, err)
		}
		u.Fold[0]++
		if errs, err := db.Derive(t.Context(), []state.Derivation{{File: id, Prev: u.Place, Understood: &u}}); err != nil || errs[0] != nil {
			t.Fatal(errs, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	w.startSeen(o)
	w.sync()
	w.write(transcriptOf(sessionA), a.prompt("two"))
	w.sync()
	w.expect(o, "with another program's fold", "one", "two!")
}
