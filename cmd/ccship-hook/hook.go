package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A hook takes hookBeats beats at most once it has its input, where Claude Code waits for it: a turn must not wait for
// more than 20 ms, and the system needs some of them to start and end a program. A hook that nobody waits for takes
// patientBeats, and so does the one at the start of a session, which comes once: on a busy machine the daemon answers
// late. Beats are counted instead of time: when the machine stalls this process it stalls the daemon too.
const (
	hookBeats    = 9
	patientBeats = 1000
	beatTime     = time.Millisecond
)

// confirmTime is how long a hook that has printed its text takes to tell the daemon so.
const confirmTime = 100 * time.Millisecond

// inputTime is how long a hook waits for its input. Claude Code writes it when it gets to it, which may be late on a
// busy machine: nobody waits for the hook meanwhile.
const inputTime = 2 * time.Second

// events returns the hooks of the plugin, by the names of their verbs, as Claude Code calls them.
func events() map[string]string {
	return map[string]string{
		"session-start":      "SessionStart",
		"user-prompt-submit": "UserPromptSubmit",
		"pre-tool-use":       "PreToolUse",
		"post-tool-use":      "PostToolUse",
	}
}

// hook is one call of a hook. Its fields are set before Answer.
type hook struct {
	Stdin   io.Reader
	Stdout  io.Writer
	Sockets func() ([]string, error) // where a daemon may listen; the first one that runs is asked

	event    string      // as Claude Code calls it
	beats    int         // where Claude Code waits
	complete chan int    // gets the hook's beats, once its input is complete
	printing atomic.Bool // the text is being printed and confirmed
}

// newHook makes a hook that takes so many beats where Claude Code waits for it; see within.
func newHook(beats int) *hook { return &hook{beats: beats, complete: make(chan int, 1)} }

// within runs work, which calls h.Answer, and limits its time. Whatever happens, it returns within the hook's beats
// after its input is complete: Claude Code shows a hook that fails, and one that exits with 2 stops people's work. Work
// may be left behind: the process ends.
func within(h *hook, work func(ctx context.Context)) {
	signal.Ignore(syscall.SIGPIPE) // a caller that closed stdout does not want the output
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		work(ctx)
	}()
	if h.over(done) {
		return
	}
	cancel()
	if h.printing.Load() {
		select {
		case <-done:
		case <-time.After(2 * confirmTime): // nobody reads what it prints
		}
	}
}

// over waits until a hook is done, or its time is up so many beats after its input is complete, or when there is none
// for too long. It reports whether the hook is done.
func (h *hook) over(done <-chan struct{}) bool {
	var beats int
	select {
	case beats = <-h.complete:
	case <-time.After(inputTime):
		return false
	case <-done:
		return true
	}
	beat := beatTime
	if beats >= patientBeats { // it is in no hurry: it wakes less often
		beats, beat = beats/10, 10*beatTime
	}
	tick := time.NewTimer(beat)
	defer tick.Stop()
	for range beats {
		select {
		case <-done:
			return true
		case <-tick.C:
			tick.Reset(beat)
		}
	}
	return false
}

// Answer answers the hook of this name. It reads all of its input while there is time, because the writer fails
// otherwise. An unknown name is an error, and nothing is read.
func (h *hook) Answer(ctx context.Context, event string) error {
	name, known := events()[event]
	if !known {
		return errUnknownHook
	}
	h.event = name
	in, whole := readInput(h.Stdin)
	completed := sync.OnceFunc(func() { h.complete <- h.patience(in) })
	if whole {
		completed()
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, h.Stdin)
		completed()
	}()
	err := h.tell(ctx, in)
	select {
	case <-drained:
	case <-ctx.Done():
	}
	return err
}

// patience returns how many beats the hook takes. Claude Code waits for it at the start of a session, and in old
// versions, which do not know that a hook can be asynchronous.
func (h *hook) patience(in input) int {
	if h.event == "SessionStart" || in.recent() {
		return max(h.beats, patientBeats)
	}
	return h.beats
}

// recent reports whether the input comes from a version since 2.1.154: these do not wait for asynchronous hooks, and
// read what every hook prints.
func (in *input) recent() bool {
	return in.prompt != "" || os.Getenv("CLAUDE_CODE_SESSION_ID") != ""
}
