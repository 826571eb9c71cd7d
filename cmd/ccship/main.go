// Command ccship delivers Claude Code's conversations to a server its user owns: the daemon, and the command line that
// talks to it. The daemon itself is package daemon; here are only words, flags, exit codes and what is seen on screen.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/setup"
	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
)

// version is set by the linker.
var version = "dev"

func main() {
	if os.Getenv("CCSHIP_MEMORY_PROFILE") == "" {
		runtime.MemProfileRate = 0 // its table takes 1.5 MiB of a daemon that has 20
	}
	os.Exit(command())
}

// command is main with an exit code.
func command() int {
	a := &app{App: show.App{Stdout: os.Stdout, Stderr: os.Stderr, Version: version}, build: thisBuild()}
	return a.execute(context.Background(), os.Args[1:])
}

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

// build is what is known of a program.
type build struct {
	SchemaVersion int    `json:"schema_version"`
	Version       string `json:"version"`
	Commit        string `json:"commit,omitempty"`
	Go            string `json:"go"`
	OS            string `json:"os"`
	Arch          string `json:"arch"`
}

// text returns what --version prints.
func (b build) text() string {
	text := fmt.Sprintf("ccship %s (%s, %s/%s", b.Version, b.Go, b.OS, b.Arch)
	if b.Commit != "" {
		text += ", " + b.Commit
	}
	return text + ")\n"
}

// thisBuild returns what is known of the running program.
func thisBuild() build {
	return build{
		SchemaVersion: control.SchemaVersion, Version: version, Commit: commit(),
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
	}
}

// commit returns the revision the binary was built from, when the toolchain knew it.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:min(12, len(s.Value))]
		}
	}
	return ""
}

func (a *app) guardCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "guard PROGRAM ARGS…",
		Short:  "Run a program until standard input ends",
		Hidden: true,
		Args:   cobra.MinimumNArgs(1),

		DisableFlagParsing: true,
		RunE:               func(cmd *cobra.Command, args []string) error { return setup.Guard(cmd.Context(), args) },
	}
}

// listed are words separated by commas, all of which must be known.
func listed(flag, text string, known []string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	var out []string
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		if err := oneOf(flag, word, known); err != nil {
			return nil, err
		}
		out = append(out, word)
	}
	return out, nil
}

// oneOf refuses a word that a flag does not know, with the nearest that it knows.
func oneOf(flag, word string, known []string) error {
	if slices.Contains(known, word) {
		return nil
	}
	hint := "it knows " + strings.Join(known, ", ")
	if near := amount.Nearest(word, known); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return control.Usage(fmt.Sprintf("%s has no %q", flag, word), hint)
}
