package setup

import (
	"context"
	"io"
	"os"
	"os/exec"
)

// Guard runs a program, args[0], that ends when the other end of its standard input is closed, which the system does
// when the process that holds it dies, however it dies. `ccship up` uses it where the system cannot tie a child's life
// to its parent's.
func Guard(ctx context.Context, args []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // never waited for: the read ends with the parent or with this process
		_, _ = io.Copy(io.Discard, os.Stdin) // its end is all that matters
		cancel()
	}()
	child := exec.CommandContext(ctx, args[0], args[1:]...)
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	child.Cancel = func() error { return askToEnd(child.Process) }
	child.WaitDelay = farewell
	if err := child.Run(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}
