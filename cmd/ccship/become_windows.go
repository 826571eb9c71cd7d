package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/ccship/ccship/cmd/ccship/show"
)

// become runs another program, which has this one's standard input and output, to its end.
func become(program string, args []string) error {
	cmd := exec.Command(program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return show.SilentError{Code: exit.ExitCode()}
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", program, err)
	}
	return nil
}
