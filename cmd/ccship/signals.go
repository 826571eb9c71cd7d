package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// untilSignal is ctx until the user or the system asks to stop. A second request ends the process at once. stop must
// be called; it gives signals their usual meaning back.
func untilSignal(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup asks to live on
		signal.Notify(signals, syscall.SIGHUP)
	}
	over := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for range 2 {
			select {
			case <-signals:
				if ctx.Err() != nil {
					os.Exit(exitFailed)
				}
				cancel()
			case <-over:
				return
			}
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		close(over)
		wait.Wait()
		cancel()
	}
}
