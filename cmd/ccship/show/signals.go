package show

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// UntilSignal is ctx until the user or the system asks to stop. A second request ends the process at once. stop must
// be called; it gives signals their usual meaning back.
func UntilSignal(ctx context.Context) (_ context.Context, stop func()) {
	return untilSignalBut(ctx, func(os.Signal) bool { return false })
}

// untilSignalBut is untilSignal, apart from the signals that handled takes for something else.
func untilSignalBut(ctx context.Context, handled func(os.Signal) bool) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup asks to live on
		signal.Notify(signals, syscall.SIGHUP)
	}
	over := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			select {
			case s := <-signals:
				if handled(s) {
					continue
				}
				if ctx.Err() != nil {
					os.Exit(ExitFailed)
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

// IgnoreInterrupts leaves Ctrl-C to a child until stop is called. ignored says whether there was one.
func IgnoreInterrupts() (ignored func() bool, stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	return func() bool { return len(signals) > 0 }, func() { signal.Stop(signals) }
}
