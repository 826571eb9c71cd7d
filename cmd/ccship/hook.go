package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/cli"
	"github.com/ccship/ccship/daemon/control"
)

// A hook takes hookBeats beats at most once it has its input: a turn must not wait for more than 20 ms, and the
// system needs some of them to start and end a program. The hook at the start of a session, which comes once, takes
// startBeats: what it is told too late is missing for the whole session. Beats are counted instead of time: when the
// machine stalls this process it stalls the daemon too, and a notice that the daemon hands over too late is lost.
const (
	hookBeats  = 9
	startBeats = 1000
	hookBeat   = time.Millisecond
)

// hookInputTime is how long a hook waits for its input. Claude Code writes it when it gets to it, which may be late
// on a busy machine: nobody waits for the hook meanwhile.
const hookInputTime = 2 * time.Second

// maxHookHead is how many bytes of a hook's input are searched for what it says of the session. A tool's input and
// output come last and can be of any size.
const maxHookHead = 64 << 10

// hookEvents are the hooks of the plugin, by the names of their verbs, as Claude Code calls them.
var hookEvents = map[string]string{
	"session-start":      "SessionStart",
	"user-prompt-submit": "UserPromptSubmit",
	"pre-tool-use":       "PreToolUse",
	"post-tool-use":      "PostToolUse",
}

// runHook is the command line of `ccship hook`. Whatever happens, it ends within that many beats after its input is
// complete, with exit code 0 and nothing on stderr: Claude Code shows a hook that fails, and one that exits with 2
// stops people's work.
func runHook(args []string, beats int) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if slices.Contains(args, "session-start") {
		beats = max(beats, startBeats)
	}
	complete := make(chan struct{})
	go limitHook(ctx, cancel, complete, beats)
	signal.Ignore(syscall.SIGPIPE) // whoever closed stdout does not want to be told
	done := make(chan struct{})
	go func() { // left behind when time is up: the process ends
		defer close(done)
		defer func() { _ = recover() }()
		a := &app{App: cli.App{Stdout: os.Stdout, Stderr: io.Discard}}
		a.inputComplete = sync.OnceFunc(func() { close(complete) })
		a.execute(ctx, args)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	return cli.ExitOK
}

// limitHook cancels a hook so many beats after its input is complete, or when there is none for too long.
func limitHook(ctx context.Context, cancel context.CancelFunc, complete <-chan struct{}, beats int) {
	defer cancel()
	select {
	case <-complete:
	case <-time.After(hookInputTime):
		return
	case <-ctx.Done():
		return
	}
	for range beats {
		if cli.Sleep(ctx, hookBeat) != nil {
			return
		}
	}
}

func (a *app) hookCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "hook EVENT",
		Short: "Answer a hook of Claude Code, for the plugin",
		Long: "Read what Claude Code tells a hook from standard input, and print the notices for the session. " +
			"Once it has its input it takes 20 ms at most, at the start of a session one second. It prints nothing when " +
			"there is nothing to say, and always succeeds. " +
			"Events: session-start, user-prompt-submit, pre-tool-use, post-tool-use.",
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return slices.Sorted(maps.Keys(hookEvents)), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.hook(cmd.Context(), args[0], os.Stdin) },
	}
}

// hook answers one hook. It reads all of its input while there is time, because the writer fails otherwise.
func (a *app) hook(ctx context.Context, event string, stdin io.Reader) error {
	name, known := hookEvents[event]
	if !known {
		return control.Usage("there is no hook "+event, "`ccship hook --help` lists the events")
	}
	in, whole := readHook(stdin)
	if whole {
		a.inputComplete()
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, stdin)
		a.inputComplete()
	}()
	err := a.answerHook(ctx, name, in)
	select {
	case <-drained:
	case <-ctx.Done():
	}
	return err
}

// hookInput is what is read of a hook's input.
type hookInput struct {
	session, cwd string
	agent        string // set in a subagent
	prompt       string // id; versions since 2.1.196 say it
}

// readHook reads the members it knows of the object at the beginning of r, in any order. whole: it has read all of the
// object.
func readHook(r io.Reader) (in hookInput, whole bool) {
	d := json.NewDecoder(io.LimitReader(r, maxHookHead))
	members := map[string]*string{
		"session_id": &in.session, "cwd": &in.cwd, "agent_id": &in.agent, "prompt_id": &in.prompt,
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

// answerHook asks the daemon for notices, and prints them as the hook's output.
func (a *app) answerHook(ctx context.Context, event string, in hookInput) error {
	if in.session == "" || in.agent != "" || !heard(event, in) {
		return nil
	}
	c, err := a.Config()
	if err != nil {
		return err
	}
	text, err := askForHook(ctx, cli.Sockets(c), event, in)
	if err != nil || text == "" {
		return err
	}
	type output struct {
		Event   string `json:"hookEventName"`
		Context string `json:"additionalContext"`
	}
	return a.PrintJSON(map[string]output{"hookSpecificOutput": {event, text}})
}

// heard says whether Claude Code reads what a hook of this kind prints. Old versions drop the output of a PreToolUse
// hook. A notice is handed over only once, so they get theirs after the tool.
func heard(event string, in hookInput) bool {
	return event != "PreToolUse" || in.prompt != "" || os.Getenv("CLAUDE_CODE_SESSION_ID") != ""
}

// askForHook asks the first daemon that runs.
func askForHook(ctx context.Context, paths []string, event string, in hookInput) (text string, err error) {
	for _, path := range slices.Compact(paths) {
		client := control.DialPatiently(path) // ctx ends in time
		if event == "SessionStart" {
			var init control.Init
			init, err = client.Init(ctx, control.InitQuery{Session: in.session, Cwd: in.cwd})
			text = init.Text
		} else {
			var pending control.Pending
			pending, err = client.Pending(ctx, control.PendingRequest{Session: in.session, Event: event})
			text = pending.Text
		}
		if !errors.Is(err, control.ErrNotRunning) && !control.UnusablePath(err) {
			break
		}
	}
	return text, err
}
