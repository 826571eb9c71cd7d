//go:build unix

package claude_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/ccship/ccship/lab/setting"
)

// TestRealClaudePluginTurns times the same turn in a Claude Code with the plugin and in one without, side by side,
// while the daemon runs, is stopped by a signal, and does not run. It demands that the turns end; the times are for people
// to read.
func TestRealClaudePluginTurns(t *testing.T) {
	setting.Asked(t)
	n := setting.Number(t, "pairs", 15)
	for _, version := range allVersions() {
		t.Run(version, func(t *testing.T) {
			program := installed(t, version)
			w := newWorld(newHome(t, program, newStub(t)))
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			w.start()
			w.flags = []string{"--model", model}
			without := w.converse(ctx)
			w.withPlugin()
			with := w.converse(ctx)
			for range 3 { // until its code is warm
				without.prompt(turnPrompt)
				with.prompt(turnPrompt)
			}
			compare(t, "up", n, with, without)
			must(t, w.daemon.Cmd.Process.Signal(syscall.SIGSTOP))
			compare(t, "frozen", n, with, without)
			must(t, w.daemon.Cmd.Process.Signal(syscall.SIGCONT))
			w.daemon.Kill()
			compare(t, "down", n, with, without)
			with.end()
			without.end()
			w.start()
			w.verify()
		})
	}
}

// compare times n pairs of turns, whose order alternates.
func compare(t *testing.T, daemon string, n int, with, without *dialogue) {
	t.Helper()
	var p paired
	timed := func(d *dialogue) time.Duration {
		<-time.After(rest) // hooks that nobody waits for are still running
		start := time.Now()
		d.prompt(turnPrompt)
		return time.Since(start)
	}
	for i := range n {
		if i%2 == 0 {
			p.without = append(p.without, timed(without))
		}
		p.with = append(p.with, timed(with))
		if i%2 == 1 {
			p.without = append(p.without, timed(without))
		}
	}
	p.what = "the plugin"
	t.Logf("the daemon is %s:\n%s", daemon, p.table())
}
