package main

import (
	"errors"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ccship/ccship/e2e/kit"
)

// Ctrl-C ends setup at any question, with nothing saved; after one for a key the terminal shows what is typed.
func TestQuestionEnds(t *testing.T) {
	for _, test := range []struct {
		name, typed, question string
	}{
		{"address", "", "server address"},
		{"unreachable", "127.0.0.1:1\n", "save this address anyway? (y/N)"},
		{"key", "127.0.0.1:1\ny\n", "API key (empty: none)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			seen, tty := openTerminal(t, 100, 30)
			cmd := process(t, "setup", "--no-install")
			cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			kit.Must(t, cmd.Start())
			shown := reading(t, seen)
			shown("server address")
			kit.Try(seen.WriteString(test.typed)).Must(t)
			shown(test.question)
			if test.name == "key" {
				echoes(t, int(tty.Fd()), false)
			}
			kit.Try(seen.Write([]byte{3})).Must(t)
			shown("interrupted")
			err := cmd.Wait()
			exit, ok := errors.AsType[*exec.ExitError](err)
			kit.Check(t, ok && exit.ExitCode() == 1, "ended with %v, want exit status 1", err)
			echoes(t, int(tty.Fd()), true)
		})
	}
}

// echoes waits until the terminal shows what is typed, or does not.
func echoes(t *testing.T, fd int, want bool) {
	t.Helper()
	kit.Eventually(t, "the echo changed", hung/12, func() bool {
		state, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		return err == nil && (state.Lflag&unix.ECHO != 0) == want
	})
}
