//go:build unix

package claude_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/table"
)

// turnPrompt is what every turn says: a tool is called, so that a turn has a few lines to write.
const turnPrompt = `@Read {"file_path":"nothing.txt"}`

// rest is how long everything is left alone before a turn, so that what came before it is no part of it.
const rest = 250 * time.Millisecond

// TestTurns times the same turn without and with something, in pairs whose order alternates (A B B A), so that what
// drifts with time weighs on both alike: with ccship, in a Claude Code that starts and in one that runs; with the plugin,
// while the daemon runs and while it does not. Only that turns end is tested; the differences are for people to read.
func TestTurns(t *testing.T) {
	kit.OnlyInLab(t)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			program := installed(t, version)
			found := &table.Table{Title: "A turn of Claude Code " + version + ", without and with"}
			processes(t, program, found)
			plugins(t, program, found)
			found.Print(os.Stdout)
		})
	}
}

// processes compares turns while the daemon runs with turns while it does not. Both are preceded by its start.
func processes(t *testing.T, program string, found *table.Table) {
	w := newWorld(newHome(t, program, newStub(t)))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d := w.converse(ctx)
	w.prompt(turnPrompt) // the first start sets things up
	d.prompt(turnPrompt)
	for what, turn := range map[string]func(){
		"ccship, from the start of a process": func() { w.prompt(turnPrompt) },
		"ccship":                              func() { d.prompt(turnPrompt) },
	} {
		pairs(t, found, what, func(with bool) time.Duration {
			w.start()
			w.sync() // it has nothing left to do but the turn to come
			if !with {
				w.daemon.MustStop(w.t)
			}
			took := timed(turn)
			if with {
				w.sync()
				w.daemon.MustStop(w.t)
			}
			return took
		})
	}
	d.end()
	w.start()
	w.verify() // it was really shipped
	w.daemon.MustStop(w.t)
}

// plugins compares a Claude Code that has the plugin with one that has not.
func plugins(t *testing.T, program string, found *table.Table) {
	w := newWorld(newHome(t, program, newStub(t)))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w.start()
	w.flags = []string{"--model", model}
	without := w.converse(ctx)
	w.withPlugin()
	talks := map[bool]*dialogue{false: without, true: w.converse(ctx)}
	turn := func(with bool) time.Duration { return timed(func() { talks[with].prompt(turnPrompt) }) }
	for range 3 { // until its code is warm
		turn(false)
		turn(true)
	}
	pairs(t, found, "the plugin", turn)
	w.daemon.Kill()
	pairs(t, found, "the plugin, no daemon", turn)
	talks[true].end()
	without.end()
	w.start()
	w.verify()
}

// timed is how long a turn takes.
func timed(turn func()) time.Duration {
	<-time.After(rest)
	began := time.Now()
	turn()
	return time.Since(began)
}

// pairs times turns without and with something, and adds both and their differences.
func pairs(t *testing.T, found *table.Table, what string, turn func(with bool) time.Duration) {
	t.Helper()
	for i := range kit.SettingNumber("pairs", map[bool]int{true: 3, false: 20}[kit.IsQuick()]) {
		took := map[bool]float64{}
		for _, with := range []bool{i%2 == 1, i%2 == 0} {
			took[with] = turn(with).Seconds() * 1000
		}
		found.Add("without", what, "ms", took[false])
		found.Add("with", what, "ms", took[true])
		found.Add("difference", what, "ms", took[true]-took[false])
	}
}
