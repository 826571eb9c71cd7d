//go:build linux

package delivery_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/gauge"
	"github.com/ccship/ccship/lab/bench/sink"
)

// place is where one contestant works in one measurement: folders and a server of its own.
type place struct {
	t        *testing.T
	c        *contestant
	dir      string
	projects string
	state    string
	sink     *sink.Sink
	proc     *kit.Process
	spent    time.Duration   // processor time of processes that have ended
	ever     map[string]bool // lines that were once whole in a file
}

// newPlace makes a place. The contestant reads the transcripts of a folder; "": an empty one.
func newPlace(t *testing.T, c *contestant, projects string) *place {
	t.Helper()
	dir := kit.Try(os.MkdirTemp(kit.Workshop(), "p")).Must(t)
	p := &place{t: t, c: c, dir: dir, projects: projects, state: filepath.Join(dir, "state"), sink: sink.New(),
		ever: map[string]bool{}}
	if projects == "" {
		p.projects = filepath.Join(dir, "projects")
	}
	kit.Must(t, errors.Join(os.MkdirAll(p.projects, 0o755), os.MkdirAll(p.state, 0o700)))
	t.Cleanup(func() {
		p.sink.Close()
		kit.Must(t, os.RemoveAll(dir))
	})
	return p
}

// start starts the contestant if it is one that runs all the time.
func (p *place) start() {
	p.t.Helper()
	if p.c.follows {
		p.proc = kit.Launch(p.t, p.c.command(p))
	}
}

// kill ends it as a power switch would.
func (p *place) kill() {
	if p.proc != nil {
		p.spent = p.cpu()
		p.proc.Kill()
		p.proc = nil
	}
}

// cpu is the processor time of all that ran for the contestant here.
func (p *place) cpu() time.Duration {
	if p.proc == nil {
		return p.spent
	}
	u := kit.Try(gauge.Tree(p.proc.Cmd.Process.Pid)).Must(p.t)
	return p.spent + u.CPU
}

// run runs a program to its end and counts what it used.
func (p *place) run(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState != nil {
		p.spent += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", p.c.name, err, kit.Tail(string(out), 500))
	}
	return nil
}

// deliver waits until so many lines came, after it has called a contestant that does not run by itself.
func (p *place) deliver(lines int64, limit time.Duration) bool {
	p.t.Helper()
	p.poke()
	ended := func() bool { return p.proc != nil && p.proc.Ended() }
	return p.sink.Until(limit, func() bool { return p.sink.Lines.Load() >= lines || ended() }) && !ended()
}

// poke calls what does not run by itself.
func (p *place) poke() {
	if p.c.follows {
		return
	}
	if err := p.c.deliver(p); err != nil {
		say("    %v", err)
	}
}

// path is a transcript's.
func (p *place) path(folder, name string) string {
	dir := filepath.Join(p.projects, folder)
	kit.Must(p.t, os.MkdirAll(dir, 0o755))
	return filepath.Join(dir, name+".jsonl")
}

// lines makes lines with the marks from first to before end, and remembers them.
func (p *place) lines(first, end, length int) (text []byte) {
	for n := first; n < end; n++ {
		line := sink.Line(n, length, p.dir)
		p.ever[line] = true
		text = append(append(text, line...), '\n')
	}
	return text
}

// add appends to a file.
func (p *place) add(path string, text []byte) {
	p.t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	kit.Must(p.t, err)
	_, err = f.Write(text)
	kit.Must(p.t, errors.Join(err, f.Close()))
}

// session is a name of a transcript.
func session(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }
