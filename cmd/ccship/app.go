package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/config"
)

// app is one run of the command line. Data goes to stdout, words to stderr.
type app struct {
	stdout, stderr io.Writer
	build          build          // of the running program
	flags          *pflag.FlagSet // the persistent ones
	json           bool           // --json of the subcommand that has it
	started        bool           // a subcommand's code was reached: what fails from there on is no usage error
}

// execute runs the subcommand that args name and returns the exit code.
func (a *app) execute(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	strict(root)
	err := root.ExecuteContext(ctx)
	if err != nil && !a.started {
		err = usageError(err)
		for _, arg := range args { // the flag itself may come after the mistake
			a.json = a.json || arg == "--json"
		}
	}
	return a.report(err)
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
	a.flags = root.PersistentFlags()
	a.flags.String("config", "", "configuration `file`")
	for _, name := range []string{"state_dir", "socket", "roots", "server_url", "api_key_file", "log_level"} {
		if o, ok := config.LookupOption(name); ok {
			a.flags.String(o.Flag(), "", lowerFirst(strings.TrimSuffix(o.Doc, "."))+" (`"+firstWord(o.Type())+"`)")
		}
	}
	root.AddCommand(
		a.upCommand(), a.runCommand(), a.statusCommand(), a.doctorCommand(), a.syncCommand(), a.verifyCommand(), a.pathsCommand(),
		a.setupCommand(), a.installCommand(), a.uninstallCommand(), a.startCommand(), a.stopCommand(), a.restartCommand(), a.logsCommand(),
		a.pauseCommand(), a.resumeCommand(), a.flushCommand(), a.excludeCommand(), a.outboxCommand(), a.reloadCommand(),
		a.sessionsCommand(), a.searchCommand(), a.forgetCommand(), a.messagesCommand(),
		a.checkpointCommand(), a.linkCommand(),
		a.hookCommand(), a.mcpCommand(), a.pluginCommand(),
		a.configCommand(), a.versionCommand(), a.guardCommand(),
	)
	return root
}

// config loads the configuration with the flags that were given.
func (a *app) config() (config.Config, error) { return a.configIn(nil) }

// configIn is config with another environment; nil is that of the process.
func (a *app) configIn(env config.Env) (config.Config, error) {
	c, err := config.Load(a.given(), env)
	c.Version = a.build.Version
	return c, err
}

// given are the flags of the configuration that were given, by option.
func (a *app) given() map[string]string {
	given := map[string]string{}
	a.flags.VisitAll(func(f *pflag.Flag) { // a subcommand parses them: only Changed tells
		if f.Changed {
			given[strings.ReplaceAll(f.Name, "-", "_")] = f.Value.String()
		}
	})
	return given
}

// addJSON gives a command the --json flag.
func (a *app) addJSON(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.json, "json", false, "print one JSON document")
}

// printJSON writes a document in one line.
func (a *app) printJSON(document any) error {
	e := json.NewEncoder(a.stdout)
	e.SetEscapeHTML(false)
	if err := e.Encode(document); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// print writes data for people.
func (a *app) print(text string) error {
	if _, err := io.WriteString(a.stdout, text); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// view writes answers for people on stdout.
func (a *app) view() show.View { return show.On(a.stdout) }

// say writes words about what happens. A closed stderr stops nothing.
func (a *app) say(format string, args ...any) {
	_, _ = fmt.Fprintf(a.stderr, format+"\n", args...)
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}
