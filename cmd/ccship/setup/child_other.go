//go:build !linux

package setup

import (
	"fmt"
	"os"
	"os/exec"
)

// tie makes a child that has not been started end with this process, even after kill -9, and keeps the terminal's
// Ctrl-C from it: the daemon is to stop first. The child is run by a guard that watches a pipe of ours. done is called
// when the child has ended.
func tie(cmd *exec.Cmd) (done func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	cmd.Args = append([]string{self, "guard", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = self
	cmd.Stdin = theirs
	cmd.Cancel = ours.Close
	cmd.WaitDelay = 2 * farewell // the guard waits for the child itself
	cmd.SysProcAttr = apart()
	return func() { // closing twice is no failure that matters
		_ = ours.Close()
		_ = theirs.Close()
	}, nil
}
