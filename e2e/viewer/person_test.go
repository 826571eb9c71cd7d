//go:build unix

package viewer_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// person is one person's machine: a home with Claude Code's transcripts in it, and the daemon that ships them.
type person struct {
	t   testing.TB
	dir string
}

// newPerson starts the daemon in a home of its own.
func newPerson(t testing.TB, s *site) *person {
	t.Helper()
	daemon := kit.Try(kit.Build("ccship")).Must(t)
	dir, err := os.MkdirTemp(kit.Workshop(), "h") // short: a socket's path may have only about a hundred bytes
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := &person{t, dir}
	must(t, os.MkdirAll(p.projects(), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "key"), []byte(s.key+"\n"), 0o600))
	proc, err := launch([]string{
		"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "XDG_CONFIG_HOME=" + filepath.Join(dir, "config"),
		"XDG_STATE_HOME=" + filepath.Join(dir, "state"), "XDG_RUNTIME_DIR=" + filepath.Join(dir, "run"), "CCSHIP_ROOTS=" + p.projects(),
		"CCSHIP_SERVER_URL=" + s.url, "CCSHIP_API_KEY_FILE=" + filepath.Join(dir, "key"),
	}, daemon, "run")
	must(t, err)
	proc.StopAfter(t)
	return p
}

func (p *person) projects() string { return filepath.Join(p.dir, ".claude", "projects") }

// transcript is the file of a session.
func (p *person) transcript(id string) string {
	dir := filepath.Join(p.projects(), "-home-kim-src-harbour")
	must(p.t, os.MkdirAll(dir, 0o700))
	return filepath.Join(dir, id+".jsonl")
}

// write appends what a script has said since the last time, as Claude Code does: open, one write, close.
func (p *person) write(s *script) {
	p.t.Helper()
	f, err := os.OpenFile(p.transcript(s.id), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	must(p.t, err)
	_, err = f.Write(s.bytes())
	s.lines = nil
	must(p.t, errors.Join(err, f.Close()))
}

// newScript is a conversation that begins now.
func newScript(id string) *script {
	return &script{id: id, cwd: "/home/kim/src/harbour", branch: "main", model: "claude-opus-5-5", at: time.Now(), context: 12_000, fresh: 900}
}
