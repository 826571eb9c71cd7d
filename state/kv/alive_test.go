package kv

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// Being alive costs no write, and is not claimed while a transaction hangs or after the end.
func TestAlive(t *testing.T) {
	path := t.TempDir() + "/state.db"
	s := open(t, Options{Path: path})
	before := kit.Try(os.Stat(path)).Must(t)
	was := lastTx(t, s)
	for range 10 {
		kit.Must(t, s.Alive(t.Context()))
	}
	after, err := os.Stat(path)
	kit.Check(t, err == nil && after.ModTime().Equal(before.ModTime()) && lastTx(t, s) == was, "it wrote: %v", err)
	s.group.write.Lock() // as a transaction that hangs holds it
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- s.Alive(t.Context()) }()
	waitFor(t, "the first", func() bool { return s.group.queued() == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	go func() { second <- s.Alive(ctx) }()
	err = <-second
	kit.Check(t, errors.Is(err, context.DeadlineExceeded), "behind one that hangs: %v", err)
	select {
	case err := <-first:
		t.Errorf("answered while the file hangs: %v", err)
	default:
	}
	s.group.write.Unlock()
	kit.Should(t, <-first)
	kit.Must(t, s.Close())
	kit.Err(t, "after Close", ErrClosed)(s.Alive(t.Context()))
}
