// Command ccship-mcp lets Claude ask ccship: a server of the Model Context Protocol on standard input and output, for
// the Claude Code plugin and other clients. `ccship mcp` starts it. It keeps nothing: answers come from the daemon, and
// those of a search from `ccship search`.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// version is set by the linker.
var version = "dev"

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// parentBeat is the time between two looks at whether the parent process still runs.
const parentBeat = 2 * time.Second

func main() { os.Exit(command()) }

// command is main with an exit code.
func command() int {
	t := &tools{session: os.Getenv("CLAUDE_CODE_SESSION_ID"), dir: os.Getenv("CLAUDE_PROJECT_DIR")}
	flags := flag.NewFlagSet("ccship-mcp", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&t.ccship, "ccship", "ccship", "")
	flags.Func("socket", "", func(path string) error {
		t.sockets = append(t.sockets, path)
		return nil
	})
	if err := flags.Parse(os.Args[1:]); err != nil || len(t.sockets) == 0 {
		fmt.Fprintln(os.Stderr, "ccship-mcp: --socket is missing\nhint: `ccship mcp` starts this program")
		return exitUsage
	}
	t.flags = flags.Args()
	if t.dir == "" {
		t.dir, _ = os.Getwd() // without one a session has to be named
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go untilOrphaned(ctx, os.Getppid(), cancel)
	served := make(chan error, 1)
	go func() { served <- t.server().Run(ctx, &lines{os.Stdin, os.Stdout}) }()
	select {
	case err := <-served:
		if err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "ccship-mcp:", err)
			return exitFailed
		}
	case <-ctx.Done(): // its read of standard input may never end
	}
	return exitOK
}

// untilOrphaned calls gone when the parent process has ended. Standard input ends then too, unless another process
// holds its other end.
func untilOrphaned(ctx context.Context, parent int, gone func()) {
	tick := time.NewTicker(parentBeat)
	defer tick.Stop()
	for os.Getppid() == parent {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
	gone()
}
