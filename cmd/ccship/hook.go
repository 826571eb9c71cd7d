package main

import (
	"context"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/hook"
	"github.com/ccship/ccship/internal/sys"
)

// runHook is the command line of `ccship hook`, which plugins call that do not know ccship-hook. Whatever happens, it
// ends within that many beats after its input is complete, with exit code 0 and nothing on stderr.
func runHook(args []string, beats int) int {
	h := hook.New(beats)
	h.Stdin, h.Stdout = os.Stdin, os.Stdout
	h.Sockets = func() ([]string, error) { return sys.Sockets(nil) }
	hook.Within(h, func(ctx context.Context) {
		if len(args) == 2 { // as the plugin calls it: a turn pays for every part of the command line that is used
			_ = h.Answer(ctx, args[1])
			return
		}
		a := &app{App: show.App{Stdout: os.Stdout, Stderr: io.Discard}, hook: h}
		a.execute(ctx, args)
	})
	return show.ExitOK
}

func (a *app) hookCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "hook EVENT",
		Short: "Answer a hook of Claude Code, for the plugin",
		Long: "Read what Claude Code tells a hook from standard input, and print the notices for the session. " +
			"Events: session-start, user-prompt-submit, pre-tool-use, post-tool-use. It ends within 20 ms where " +
			"Claude Code waits for it, otherwise and at the start of a session within one second, and always " +
			"succeeds. The plugin calls the program ccship-hook, which does the same and starts sooner.",
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return slices.Sorted(maps.Keys(hook.Events())), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, known := hook.Events()[args[0]]; !known {
				return control.Usage("there is no hook "+args[0], "`ccship hook --help` lists the events")
			}
			h := a.hook
			if h == nil { // a flag comes before the verb: nobody limits the time
				h = hook.New(hook.Beats)
			}
			h.Stdin, h.Stdout = os.Stdin, a.Stdout
			h.Sockets = func() ([]string, error) {
				c, err := a.Config()
				return show.Sockets(c), err
			}
			return h.Answer(cmd.Context(), args[0])
		},
	}
}
