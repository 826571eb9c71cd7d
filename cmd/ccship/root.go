package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/cli"
	"github.com/ccship/ccship/cmd/ccship/sessions"
	"github.com/ccship/ccship/cmd/ccship/setup"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/config"
)

// app is one run of the command line.
type app struct {
	cli.App
	build   build // of the running program
	started bool  // a subcommand's code was reached: what fails from there on is no usage error

	inputComplete func() // of a hook: its input has been read
}

// execute runs the subcommand that args name and returns the exit code.
func (a *app) execute(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetOut(term.SafeWriter(a.Stdout, false))
	root.SetErr(term.SafeWriter(a.Stderr, false))
	strict(root)
	err := root.ExecuteContext(ctx)
	if err != nil && !a.started {
		err = cli.UsageError(err)
		for _, arg := range args { // the flag itself may come after the mistake
			a.JSON = a.JSON || arg == "--json"
		}
	}
	return a.Report(a.withStart(ctx, err))
}

// root is the command tree.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "ccship",
		Short:         "Deliver every line of every Claude Code conversation to a server you own",
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(*cobra.Command, []string) {
			a.started = true
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	a.Flags = root.PersistentFlags()
	a.Flags.String("config", "", "configuration `file`")
	for _, name := range []string{"state_dir", "socket", "roots", "server_url", "api_key_file", "log_level"} {
		if o, ok := config.LookupOption(name); ok {
			a.Flags.String(o.Flag(), "", lowerFirst(strings.TrimSuffix(o.Doc, "."))+" (`"+firstWord(o.Type())+"`)")
		}
	}
	root.AddCommand(
		a.upCommand(), a.runCommand(), a.statusCommand(), a.doctorCommand(), a.syncCommand(), a.verifyCommand(),
		a.resendCommand(), a.pathsCommand(),
		a.pauseCommand(), a.resumeCommand(), a.flushCommand(), a.excludeCommand(), a.outboxCommand(), a.reloadCommand(),
		a.redactCommand(), a.hookCommand(), a.mcpCommand(),
		a.configCommand(), a.versionCommand(), a.guardCommand(),
	)
	root.AddCommand(setup.Commands(&a.App)...)
	root.AddCommand(sessions.Commands(&a.App)...)
	return root
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}
