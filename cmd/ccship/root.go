package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/setup"
	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/config"
)

// app is one run of the command line.
type app struct {
	show.App
	build   build // of the running program
	started bool  // a subcommand's code was reached: what fails from there on is no usage error
}

// guessable is how many letters a mistyped command has at least for others with two other letters to be offered.
const guessable = 5

// execute runs the subcommand that args name and returns the exit code.
func (a *app) execute(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetOut(term.SafeWriter(a.Stdout, false))
	root.SetErr(term.SafeWriter(a.Stderr, false))
	if len(args) > 0 && len(args[0]) < guessable {
		root.SuggestionsMinimumDistance = 1
	}
	ran, err := root.ExecuteContextC(ctx)
	if err != nil && !a.started {
		err = show.UsageError(ran.CommandPath(), err)
		for _, arg := range args { // the flag itself may come after the mistake
			a.JSON = a.JSON || arg == "--json"
		}
	}
	return a.Report(a.withStart(ctx, err))
}

// root returns the command tree.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "ccship",
		Version:       a.Version,
		Short:         "Keep every Claude Code conversation, line by line, on this machine or on a server you own",
		Annotations:   map[string]string{term.Alone: "On a terminal: find a conversation while you type, and resume it"},
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.started = true
			return a.CheckJSON(cmd)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !a.interactive() {
				return cmd.Help()
			}
			return a.screen(cmd.Context())
		},
	}
	a.Flags = root.PersistentFlags()
	a.Flags.String("config", "", "configuration `file`")
	for _, name := range []string{"state_dir", "socket", "roots", "server_url", "api_key_file", "log_level"} {
		if o, ok := config.LookupOption(name); ok {
			doc := strings.TrimSuffix(o.Doc, ".")
			a.Flags.Var(newOptionValue(o), o.Flag(), strings.ToLower(doc[:1])+doc[1:])
		}
	}
	a.Flags.BoolVar(&a.JSON, "json", false, "print one JSON document")
	root.SetVersionTemplate(a.build.text())
	root.AddCommand(
		a.upCommand(), a.openCommand(), a.runCommand(), a.captureCommand(), a.statusCommand(), a.doctorCommand(),
		a.syncCommand(),
		a.verifyCommand(), a.pauseCommand(), a.unpauseCommand(), a.excludeCommand(), a.outboxCommand(), a.redactCommand(),
		a.mcpCommand(), a.configCommand(), a.guardCommand(), term.CompletionCommand(root),
		a.searchCommand(), a.whyCommand(), a.listCommand(), a.showCommand(), a.resumeCommand(), a.exportCommand(),
		a.restoreCommand(), a.shareCommand(), a.usageCommand(), a.forgetCommand(), a.messagesCommand(),
		a.checkpointCommand(), a.linkCommand(),
	)
	root.AddCommand(setup.Commands(&a.App)...)
	group(root)
	root.CompletionOptions.DisableDefaultCmd = true
	term.Dress(root, firstPage()...)
	return root
}

// firstPage returns the commands that most people need, in the order of the help.
func firstPage() []string {
	return []string{"search", "list", "show", "resume", "why", "usage", "status", "verify", "setup", "doctor"}
}

// group sorts the commands of the help into what people need every day, and what they rarely need.
func group(root *cobra.Command) {
	for i, g := range []struct{ title, names string }{
		{"Everyday commands:", strings.Join(firstPage(), " ")},
		{"Conversation commands:", "export restore share messages link checkpoint forget"},
		{"Delivery commands:", "up open capture sync pause unpause exclude outbox redact service run"},
		{"Other commands:", "config plugin mcp completion help"},
	} {
		id := strconv.Itoa(i)
		root.AddGroup(&cobra.Group{ID: id, Title: g.title})
		for _, name := range strings.Fields(g.names) {
			if c, _, err := root.Find([]string{name}); err == nil && c != root {
				c.GroupID = id
			}
		}
	}
}

// optionValue is the value of a flag that sets an option of the configuration. Help shows its kind.
type optionValue struct{ text, kind string }

func newOptionValue(o config.Option) *optionValue {
	kind := strings.ReplaceAll(o.Type(), " | ", "|")
	kind, _, _ = strings.Cut(kind, " ")
	return &optionValue{kind: kind}
}

func (v *optionValue) String() string { return v.text }

func (v *optionValue) Set(text string) error {
	v.text = text
	return nil
}

func (v *optionValue) Type() string { return v.kind }
