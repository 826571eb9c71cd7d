// Command ccship delivers Claude Code's conversations to a server its user owns: the daemon, and the command line that
// talks to it. The daemon itself is package daemon; here are only words, flags, exit codes and what is seen on screen.
package main

import (
	"context"
	"os"
	"runtime"

	"github.com/ccship/ccship/cmd/ccship/show"
)

// version is set by the linker.
var version = "dev"

func main() {
	if os.Getenv("CCSHIP_MEMORY_PROFILE") == "" {
		runtime.MemProfileRate = 0 // its table takes 1.5 MiB of a daemon that has 20
	}
	os.Exit(command())
}

// command is main with an exit code.
func command() int {
	a := &app{App: show.App{Stdout: os.Stdout, Stderr: os.Stderr, Version: version}, build: thisBuild()}
	return a.execute(context.Background(), os.Args[1:])
}
