//go:build unix

package viewer_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// launch starts a program.
func launch(env []string, program string, args ...string) (*kit.Process, error) {
	cmd := exec.Command(program, args...)
	cmd.Env = env
	return kit.Start(cmd)
}

// output runs a program to its end and answers its standard output.
func output(env []string, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = env
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}
