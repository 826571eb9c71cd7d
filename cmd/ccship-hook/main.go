// Command ccship-hook answers the hooks of Claude Code's plugin: it reads what Claude Code says of the session, asks
// the daemon what there is to tell, prints it and confirms it. It always succeeds, and prints nothing else.
//
// A turn of Claude Code pays for the start of every hook, so it is a program of its own that links as little as it can:
// it speaks HTTP on the socket by itself, because starting a program with net/http takes longer than all a hook does.
package main

import (
	"context"
	"os"

	"github.com/ccship/ccship/internal/sys"
)

func main() { run(hookBeats) }

// run is main for a hook that takes so many beats where Claude Code waits for it.
func run(beats int) {
	if len(os.Args) != 2 {
		return
	}
	h := newHook(beats)
	h.Stdin, h.Stdout = os.Stdin, os.Stdout
	h.Sockets = func() ([]string, error) { return sys.Sockets(nil) }
	within(h, func(ctx context.Context) { _ = h.Answer(ctx, os.Args[1]) })
}
