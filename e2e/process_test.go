//go:build unix

package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
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

// launch starts a program; it is killed at the end of the test, and its words are shown when the test failed.
func (h *home) launch(program string, args ...string) *process {
	h.t.Helper()
	cmd := h.command(context.Background(), program, args...)
	p := &process{t: h.t, cmd: cmd, done: make(chan struct{}), log: &journal{}}
	cmd.Stdout, cmd.Stderr = p.log, p.log
	must(h.t, cmd.Start())
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // how it ended is in ProcessState
	}()
	h.t.Cleanup(func() {
		p.kill()
		if h.t.Failed() {
			h.t.Logf("%s said:\n%s", strings.Join(cmd.Args, " "), tail(p.log.String(), 4000))
		}
	})
	return p
}

// daemon starts `ccship run` and returns when it answers.
func (h *home) daemon(args ...string) *process {
	h.t.Helper()
	p := h.launch(programs(h.t).ccship, append([]string{"run"}, args...)...)
	eventually(h.t, "the daemon answers", 30*time.Second, func() bool {
		if p.ended() {
			h.t.Fatalf("ccship run ended with %d:\n%s", p.code(), tail(p.log.String(), 4000))
		}
		return h.status().Running
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

// code is the exit code of an ended process; -1 when a signal ended it.
func (p *process) code() int {
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}

// signal tells the process something; that it has ended already is no error.
func (p *process) signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// kill ends the process as a power switch would, and waits for it to be gone.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// stop asks the process to end and demands that it does so well within the time a service manager grants.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		p.t.Fatalf("SIGTERM did not end %s within 20 s", p.cmd.Path)
	}
	if code := p.code(); code != 0 {
		p.t.Errorf("after SIGTERM the exit code is %d, want 0:\n%s", code, tail(p.log.String(), 4000))
	}
}

// pause freezes the process; resume lets it go on.
func (p *process) pause()  { p.signal(syscall.SIGSTOP) }
func (p *process) resume() { p.signal(syscall.SIGCONT) }

// tail is the end of a text.
func tail(s string, n int) string {
	if len(s) > n {
		return "…" + s[len(s)-n:]
	}
	return s
}
