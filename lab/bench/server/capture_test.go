//go:build linux

package server_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// captures adds what `ccship capture` adds to a command that writes a line, in pairs with the bare command, in a home with
// one session: with a new spool each time, with one that stays, and where a daemon watches that home.
func (b *bench) captures(f *figures) {
	b.t.Helper()
	const pairs, group = 21, "ccship capture adds to a command"
	m := b.machine()
	path := filepath.Join(m.projects(), "-work", "00000000-0000-4000-8000-000000000001.jsonl")
	kit.Must(b.t, os.MkdirAll(filepath.Dir(path), 0o700))
	kit.Must(b.t, appendMessage(path, "first"))
	line := string(kit.Try(os.ReadFile(path)).Must(b.t))
	spool := filepath.Join(m.dir, "spool")
	timed := func(args ...string) (took, cpu time.Duration) {
		cmd := exec.CommandContext(context.Background(), args[0], args[1:]...)
		cmd.Env = m.env
		began := time.Now()
		out, err := cmd.CombinedOutput()
		kit.Require(b.t, err == nil && len(out) == 0, "%q: %v, %s", args, err, out)
		return time.Since(began), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	for _, how := range []string{"a new spool", "a spool that stays", "beside a daemon"} {
		if how == "beside a daemon" {
			m.ship()
		}
		for range pairs {
			if how == "a new spool" {
				kit.Must(b.t, os.RemoveAll(spool))
			}
			bare := []string{"sh", "-c", `printf %s "$1" >>"$2"`, "sh", line, path}
			took, cpu := timed(bare...)
			with, spent := timed(append([]string{kit.Program(b.t, "ccship"), "capture", "--spool", spool, "--"}, bare...)...)
			f.Add(group, how, (with-took).Seconds()*1000, "ms").Target = "≤ 150"
			f.Add(group, how+", CPU", (spent-cpu).Seconds()*1000, "ms")
		}
	}
	m.d.MustStop(b.t)
}
