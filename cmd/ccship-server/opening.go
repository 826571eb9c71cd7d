package main

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/server/store"
)

const (
	// startExtended is for how long a start that goes on asks the service manager each time.
	startExtended = 2 * time.Minute
	startBeat     = 20 * time.Second
)

// stepKey is of what a context has tests call before each step of the store, as store.Opening.Step.
type stepKey struct{}

// openServing opens the store of a server. Meanwhile ln answers: its health, and to everything else that it is to be
// sent again. The service manager waits for it too.
func openServing(ctx context.Context, f serveFlags, set settings, ln net.Listener) (st store.Store, err error) {
	first := &startingServer{Version: version, TLS: set.tls, Log: set.log}
	stop, err := first.Run(ln)
	if err != nil {
		return nil, err
	}
	opening, cancel := context.WithCancel(ctx)
	defer cancel()
	var said atomic.Value
	say := func(text string) {
		first.Say(text)
		set.manager.Starting(text, startExtended)
		if said.Swap(text) != text {
			set.log.Info("the API answers 503 until the store is open", "why", text)
		}
	}
	go func() {
		tick := time.NewTicker(startBeat)
		defer tick.Stop()
		for {
			select {
			case <-opening.Done():
				return
			case <-tick.C:
				text, _ := said.Load().(string)
				set.manager.Starting(text, startExtended)
			}
		}
	}()
	step, _ := ctx.Value(stepKey{}).(func(string) error)
	st, err = openStore(ctx, f.store,
		store.Opening{Say: say, Replica: f.replica, Blocks: f.blocks, Step: step})
	if stopped := stop(); stopped != nil && err == nil {
		err = errors.Join(stopped, st.Close())
	}
	return st, err
}
