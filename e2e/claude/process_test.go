//go:build unix

package claude_test

import (
	"bytes"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a running program of ours.
type process struct {
	t    testing.TB
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

// launch starts a program; it is killed at the end of t, which may be longer than the test that runs now, and its
// words are shown when t failed.
func launch(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, done: make(chan struct{}), log: &journal{}}
	cmd.Stdout, cmd.Stderr = p.log, p.log
	must(t, cmd.Start())
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // how it ended is in ProcessState
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%v said:\n%.4000s", cmd.Args, p.log.String())
		}
	})
	return p
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends the process as a power switch would, and waits for it to be gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // that it has ended already is no error
	<-p.done
}

// stop asks the process to end and demands that it does so with success.
func (p *process) stop() {
	p.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		p.t.Fatalf("SIGTERM did not end %s within 20 s", p.cmd.Path)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.t.Errorf("after SIGTERM %v ended with %d", p.cmd.Args, code)
	}
}
