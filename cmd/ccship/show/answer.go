package show

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
)

// App is one run of the command line. Data goes to stdout, words to stderr.
type App struct {
	Stdout, Stderr io.Writer
	Version        string         // of the running program
	Flags          *pflag.FlagSet // the persistent ones
	JSON           bool           // --json was given
}

// Config loads the configuration with the flags that were given.
func (a *App) Config() (config.Config, error) { return a.ConfigIn(nil) }

// ConfigIn is config with another environment; nil is that of the process.
func (a *App) ConfigIn(env config.Env) (config.Config, error) {
	c, err := config.Load(a.Given(), env)
	c.Version = a.Version
	return c, err
}

// SalvagedConfig is Config for commands that show what there is in spite of a mistake. The error is the mistake; the
// configuration can be used unless its Path is empty.
func (a *App) SalvagedConfig() (config.Config, error) {
	c, err := config.Salvage(a.Given(), nil)
	c.Version = a.Version
	return c, err
}

// Given returns the flags of the configuration that were given, by option.
func (a *App) Given() map[string]string {
	given := map[string]string{}
	a.Flags.VisitAll(func(f *pflag.Flag) { // a subcommand parses them: only Changed tells
		if f.Changed && f.Name != "json" {
			given[strings.ReplaceAll(f.Name, "-", "_")] = f.Value.String()
		}
	})
	return given
}

// printsJSON marks commands that have a document for programs.
const printsJSON = "json"

// AddJSON lets a command print JSON.
func (a *App) AddJSON(cmd *cobra.Command) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[printsJSON] = ""
}

// CheckJSON refuses --json for a command that prints none.
func (a *App) CheckJSON(cmd *cobra.Command) error {
	if _, has := cmd.Annotations[printsJSON]; a.JSON && !has {
		return control.Usage("`"+cmd.CommandPath()+"` prints no JSON", "leave out --json")
	}
	return nil
}

// PrintJSON writes a document in one line. Its texts are exact: what could steer a terminal is escaped as JSON has it.
func (a *App) PrintJSON(document any) error {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err := e.Encode(document)
	if err == nil {
		_, err = io.WriteString(a.Stdout, term.EscapeJSON(text.String()))
	}
	if err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// Print writes data for people. Whatever others wrote in it cannot steer the terminal.
func (a *App) Print(text string) error {
	if _, err := io.WriteString(a.Stdout, term.Safe(text, term.Colours(a.Stdout))); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// Tell writes sentences for people on stdout, which break between words on a terminal.
func (a *App) Tell(text string) error {
	columns, _ := term.Columns(a.Stdout)
	return a.Print(term.Hang(text, columns, 2))
}

// View writes answers for people on stdout.
func (a *App) View() View { return On(a.Stdout) }

// Say writes words about what happens. Arguments stay within their line. A closed stderr stops nothing.
func (a *App) Say(format string, args ...any) {
	columns, _ := term.Columns(a.Stderr)
	var text strings.Builder
	_ = term.Printf(&text, format, args...) // a builder takes everything
	_, _ = io.WriteString(a.Stderr, term.Hang(term.Safe(text.String(), false), columns, 2)+"\n")
}

// ConfigPath returns the configuration file's path. A file that was named and is not there yet is no mistake for a
// command that is about to write it, and what else is wrong in it is found by the writing.
func (a *App) ConfigPath() (string, error) {
	named, err := a.Flags.GetString("config")
	if err != nil {
		return "", fmt.Errorf("read flags: %w", err)
	}
	return config.Path(named, nil)
}

// Answer prints an answer: with --json as one document, else as text. Without an answer it returns err, which says why.
func Answer[A any](a *App, answer A, err error, text func(A) string) error {
	switch {
	case err != nil:
		return err
	case a.JSON:
		return a.PrintJSON(answer)
	}
	return a.Print(text(answer))
}

// Ask makes one call to the daemon, and prints its answer.
func Ask[Q, A any](ctx context.Context, a *App, call func(*control.Client, context.Context, Q) (A, error), q Q,
	text func(A) string) error {
	client, err := a.DaemonClient(ctx)
	if err != nil {
		return err
	}
	answer, err := call(client, ctx, q)
	return Answer(a, answer, err, text)
}

// Interruptible makes a command's code run until the user or the system asks it to stop.
func Interruptible(
	run func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := UntilSignal(cmd.Context())
		defer stop()
		return run(ctx, cmd, args)
	}
}

// Group makes a command that only holds others.
func Group(use, short, long string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(verbs...)
	return cmd
}

// MaxLog is the size, in bytes, at which a log file is full and a new one begins.
const MaxLog = 8 << 20

// Exists says whether a file or folder is there.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// SamePath says whether two paths lead to one file.
func SamePath(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := filepath.EvalSymlinks(a)
	y, errY := filepath.EvalSymlinks(b)
	return errX == nil && errY == nil && x == y
}

// FindProgram returns the path of a program of ccship: next to this one, whose links are followed, where packages and
// archives put it, or on PATH.
func FindProgram(name string) (string, error) {
	file := name
	if runtime.GOOS == "windows" {
		file += ".exe"
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	programs := []string{self}
	if real, err := filepath.EvalSymlinks(self); err == nil && real != self {
		programs = append(programs, real)
	}
	for _, program := range programs {
		path := filepath.Join(filepath.Dir(program), file)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	path, err := exec.LookPath(file)
	if err != nil {
		return "", control.Failed("the program "+name+" is neither beside "+self+" nor on PATH",
			"every package and archive of ccship contains it: put it into "+filepath.Dir(self))
	}
	return path, nil
}

// Sleep waits for d, or for the end of ctx, which is its error.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Temporary says that a daemon seen before may come back: it is being restarted, or is too busy to answer.
func Temporary(err error) bool {
	var known *control.Error
	return errors.As(err, &known) && known.Retryable
}
