// Command ccship-hook answers the hooks of Claude Code's plugin: it reads what Claude Code says of the session, asks
// the daemon what there is to tell, prints it and confirms it. It always succeeds, and prints nothing else.
//
// A turn of Claude Code pays for the start of every hook, so it is a program of its own that links as little as it can:
// it speaks HTTP on the socket by itself, because starting a program with net/http takes longer than all a hook does.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ccship/ccship/internal/sys"
)

func main() { run(hookBeats) }

// run is main for a hook that takes so many beats where Claude Code waits for it.
func run(beats int) {
	if len(os.Args) != 2 {
		return
	}
	h := newHook(beats)
	h.Stdin, h.Stdout = os.Stdin, os.Stdout
	h.Sockets = func() ([]string, error) { return sys.Sockets(nil) }
	within(h, func(ctx context.Context) { _ = h.Answer(ctx, os.Args[1]) })
}

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

// maxHead is how many bytes of a hook's input are searched for what it says of the session. A tool's input and output
// come last and can be of any size.
const maxHead = 64 << 10

// input is what is read of a hook's input.
type input struct {
	session, cwd string
	agent        string // set in a subagent
	prompt       string // id; versions since 2.1.196 say it
	tool         string // id of the call
	title        string // the name that the user gave the session
	source       string // why a session starts: "startup", "resume", "fork", …
}

// readInput reads the members it knows of the object at the beginning of r, in any order. whole: it has read all of the
// object.
func readInput(r io.Reader) (in input, whole bool) {
	d := json.NewDecoder(io.LimitReader(r, maxHead))
	members := map[string]*string{
		"session_id": &in.session, "cwd": &in.cwd, "agent_id": &in.agent, "prompt_id": &in.prompt,
		"tool_use_id": &in.tool, "session_title": &in.title, "source": &in.source,
	}
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return in, false
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return in, false
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return in, false
		}
		if into := members[name.(string)]; into != nil {
			_ = json.Unmarshal(value, into) // only a string says something
		}
	}
	_, err := d.Token() // the object's end
	return in, err == nil
}

// errUnknownHook is the error for a hook that the plugin does not have.
var errUnknownHook = errors.New("there is no such hook")

// request and answer are what package control calls PendingRequest, and Pending or Init.
type request struct {
	Session string `json:"session"`
	Cwd     string `json:"cwd,omitempty"`
	Tool    string `json:"tool,omitempty"`
	Event   string `json:"event,omitempty"`
	Confirm bool   `json:"confirm,omitempty"`
	Receipt string `json:"receipt,omitempty"`
}

type answer struct {
	Text    string `json:"text"`
	Receipt string `json:"receipt"`
}

// tell asks the daemon what there is to tell, prints it as the hook's output, and then confirms it: what a hook did not
// print the next one gets.
func (h *hook) tell(ctx context.Context, in input) error {
	// Old versions drop the output of a PreToolUse hook.
	if in.session == "" || in.agent != "" || h.event == "PreToolUse" && !in.recent() {
		return nil
	}
	paths, err := h.Sockets()
	if err != nil {
		return err
	}
	d, said, err := h.ask(ctx, paths, in)
	if err != nil {
		return err
	}
	defer d.close()
	if said.Text == "" {
		return nil
	}
	h.printing.Store(true)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := h.print(said.Text); err != nil || said.Receipt == "" {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTime)
	defer cancel()
	_, err = d.pending(ctx, request{Session: in.session, Receipt: said.Receipt})
	return err
}

// print writes the text as Claude Code reads it from a hook.
func (h *hook) print(text string) error {
	type output struct {
		Event   string `json:"hookEventName"`
		Context string `json:"additionalContext"`
	}
	e := json.NewEncoder(h.Stdout)
	e.SetEscapeHTML(false)
	if err := e.Encode(map[string]output{"hookSpecificOutput": {h.event, text}}); err != nil {
		return fmt.Errorf("print what there is to tell: %w", err)
	}
	return nil
}

// ask asks the first daemon that runs. All that a hook asks uses one connection.
func (h *hook) ask(ctx context.Context, paths []string, in input) (d *daemon, said answer, err error) {
	for _, path := range slices.Compact(paths) {
		if d, err = dial(ctx, path); err == nil {
			said, err = h.askOne(ctx, d, in)
			if err == nil {
				return d, said, nil
			}
			d.close()
		}
		if !errors.Is(err, errNobody) {
			break
		}
	}
	return nil, answer{}, err
}

func (h *hook) askOne(ctx context.Context, d *daemon, in input) (answer, error) {
	if h.event == "SessionStart" {
		q := url.Values{"session": {in.session}, "cwd": {in.cwd}, "confirm": {"true"},
			"title": {in.title}, "source": {in.source}}
		return d.get(ctx, "/v1/init?"+q.Encode())
	}
	req := request{Session: in.session, Cwd: in.cwd, Event: h.event, Confirm: true}
	if in.recent() { // nobody waits for this hook
		req.Tool = in.tool
	}
	said, err := d.pending(ctx, req)
	if errors.Is(err, errUsage) { // a daemon of an older version does not take the working directory or the tool
		req.Cwd, req.Tool = "", ""
		return d.pending(ctx, req)
	}
	return said, err
}
