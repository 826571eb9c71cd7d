package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ccship/ccship/daemon/control"
)

// Parts are the daemon's parts that a watchdog checks.
type Parts struct {
	Control StatusReader
	Tailer  Heartbeat
	State   Prober
}

// StatusReader asks for the status over the control socket, as every client does; *control.Client is one.
type StatusReader interface {
	Status(ctx context.Context) (control.Status, error)
}

// Heartbeat is a loop that should never stop; *tail.Tailer is one.
type Heartbeat interface {
	// SinceHeartbeat is the time since the loop began its last round.
	SinceHeartbeat() time.Duration
}

// Prober is a store that may hang; *state.DB is one.
type Prober interface {
	// Alive returns when the store has made a transaction. It may outlast ctx.
	Alive(ctx context.Context) error
}

// watchdog checks that the parts work.
type watchdog struct {
	Parts
	limit time.Duration // for one check of all parts, and between two checks
	busy  chan struct{} // holds a token while the state is asked
}

// check returns the status once every part has answered, or an error that names the part that has not.
func (w *watchdog) check(ctx context.Context) (control.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	if still := w.Tailer.SinceHeartbeat(); still > 2*w.limit {
		return control.Status{}, fmt.Errorf("the tailer has been still for %s", still.Round(time.Second))
	}
	s, err := w.Control.Status(ctx)
	if err != nil {
		return s, fmt.Errorf("the control socket does not answer: %w", err)
	}
	select {
	case w.busy <- struct{}{}:
	default:
		return s, errors.New("the state still hangs")
	}
	answer := make(chan error, 1)
	go func() { // the leader of a group of transactions cannot leave it: this may outlast the check
		answer <- w.State.Alive(ctx)
		<-w.busy
	}()
	select {
	case err = <-answer:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return s, fmt.Errorf("the state does not answer: %w", err)
	}
	return s, nil
}
