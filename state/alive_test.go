package state

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"
)

// Being alive costs no write, and is not claimed while a transaction hangs or after the end.
func TestAlive(t *testing.T) {
	path := t.TempDir() + "/state.db"
	db, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	was := lastTx(t, db)
	for range 10 {
		if err := db.Alive(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if after, err := os.Stat(path); err != nil || !after.ModTime().Equal(before.ModTime()) || lastTx(t, db) != was {
		t.Errorf("it wrote: %v", err)
	}
	db.group.write.Lock() // as a transaction that hangs holds it
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- db.Alive(t.Context()) }()
	waitFor(t, "the first", func() bool { return db.group.queued() == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	go func() { second <- db.Alive(ctx) }()
	if err := <-second; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("behind one that hangs: %v", err)
	}
	select {
	case err := <-first:
		t.Errorf("answered while the state hangs: %v", err)
	default:
	}
	db.group.write.Unlock()
	if err := <-first; err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Alive(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
