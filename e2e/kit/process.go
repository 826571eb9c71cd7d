//go:build unix

package kit

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// stopLimit is how long a program may take to end before it counts as one that hangs.
const stopLimit = 5 * time.Minute

// logged is how much of a log a failed test shows, in bytes.
const logged = 4000

// Process is a running program.
type Process struct {
	Cmd  *exec.Cmd
	Log  *Journal      // what it writes to stdout and stderr
	done chan struct{} // closed when it has ended
}

// Journal collects what a process writes. It is safe for concurrent use.
type Journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write appends p.
func (j *Journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

// String returns everything written so far.
func (j *Journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// Start starts a program. The caller ends it, or has it ended by KillAfter or StopAfter.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{Cmd: cmd, Log: &Journal{}, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.Log, p.Log
	cmd.WaitDelay = 10 * time.Second // for a child that outlives it and holds its output
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // how it ended is in ProcessState
	}()
	return p, nil
}

// Launch starts a program that is killed at the end of t, which may be longer than the test that runs now.
func Launch(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p, err := Start(cmd)
	Must(t, err)
	t.Cleanup(func() {
		p.Kill()
		p.showIfFailed(t)
	})
	return p
}

// StopAfter stops the process at the end of t.
func (p *Process) StopAfter(t testing.TB) {
	t.Cleanup(func() {
		Should(t, p.Stop())
		p.showIfFailed(t)
	})
}

func (p *Process) showIfFailed(t testing.TB) {
	if t.Failed() {
		t.Logf("log of %s:\n%s", strings.Join(p.Cmd.Args, " "), Tail(p.Log.String(), logged))
	}
}

// Done is closed when the process is gone.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended reports whether the process is gone.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Code waits for the end and returns the exit code; -1 when a signal ended it.
func (p *Process) Code() int {
	<-p.done
	return p.Cmd.ProcessState.ExitCode()
}

// Signal sends a signal; that the process has ended already is no error.
func (p *Process) Signal(s os.Signal) { _ = p.Cmd.Process.Signal(s) }

// Kill ends the process as a power switch would, and waits for it to be gone.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.done
}

// Stop sends SIGTERM and waits for the end. It returns an error when the exit code is not 0, or when the process had to
// be killed.
func (p *Process) Stop() error {
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(stopLimit):
		p.Kill()
		return fmt.Errorf("SIGTERM did not end %s within %s", p.Cmd.Path, stopLimit)
	}
	if code := p.Code(); code != 0 {
		return fmt.Errorf("after SIGTERM the exit code of %s is %d:\n%s", p.Cmd.Path, code, Tail(p.Log.String(), logged))
	}
	return nil
}

// MustStop is Stop for a test, which fails on its error.
func (p *Process) MustStop(t testing.TB) {
	t.Helper()
	Should(t, p.Stop())
}

// Pause freezes the process; Resume lets it go on.
func (p *Process) Pause() { p.Signal(syscall.SIGSTOP) }

// Resume continues a process that is paused.
func (p *Process) Resume() { p.Signal(syscall.SIGCONT) }

var listening = regexp.MustCompile(`listening on ((?:https?|unix)://\S+?)/?\s`)

// Listening waits until a ccship-server listens, and returns its base URL without a slash at its end.
func (p *Process) Listening() (string, error) {
	var found []string
	if !Within(longest, func() bool {
		found = listening.FindStringSubmatch(p.Log.String())
		return found != nil || p.Ended()
	}) || found == nil {
		return "", fmt.Errorf("%s does not listen:\n%s", p.Cmd.Path, p.Log)
	}
	return found[1], nil
}
