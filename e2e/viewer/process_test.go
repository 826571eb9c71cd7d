//go:build unix

package viewer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a running program of ours.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	log  *journal
}

// journal collects what a process says; safe for concurrent use.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// launch starts a program.
func launch(env []string, program string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(program, args...), done: make(chan struct{}), log: &journal{}}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = env, p.log, p.log
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // how it ended is in ProcessState
	}()
	return p, nil
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// stop asks the process to end, and kills it when it does not.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("SIGTERM did not end %s within 20 s", p.cmd.Path)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("after SIGTERM %s ended with %d:\n%s", p.cmd.Path, code, tail(p.log.String()))
	}
	return nil
}

// stopAfter ends the process with the test, and shows its words when the test failed.
func (p *process) stopAfter(t testing.TB) {
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("%s said:\n%s", strings.Join(p.cmd.Args, " "), tail(p.log.String()))
		}
	})
}

// output runs a program to its end and answers its standard output.
func output(env []string, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = env
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// tail is the end of a text.
func tail(s string) string {
	const n = 4000
	if len(s) > n {
		return "…" + s[len(s)-n:]
	}
	return s
}
