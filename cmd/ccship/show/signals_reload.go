package show

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/ccship/ccship/cmd/ccship/term"
)

// UntilSignalOrReload is untilSignal for the daemon: SIGHUP asks it to read its configuration again, which is sent on
// reloads. Only when the terminal it was started on is gone does the signal mean what it says: the end.
func UntilSignalOrReload(ctx context.Context) (_ context.Context, reloads <-chan os.Signal, stop func()) {
	if signal.Ignored(syscall.SIGHUP) { // nohup asks to live on
		ctx, stop := UntilSignal(ctx)
		return ctx, nil, stop
	}
	asked := make(chan os.Signal, 1)
	gone := terminalGone()
	ctx, stop = untilSignalBut(ctx, func(s os.Signal) bool {
		if s != syscall.SIGHUP || gone() {
			return false
		}
		select {
		case asked <- s:
		default: // one that is asked already will do
		}
		return true
	})
	return ctx, asked, stop
}

// terminalGone answers a function that says whether the terminal of now has hung up since.
func terminalGone() func() bool {
	for _, f := range []*os.File{os.Stdin, os.Stderr, os.Stdout} {
		if term.IsTerminal(f) {
			return func() bool { return !term.IsTerminal(f) }
		}
	}
	return func() bool { return false }
}
