package show

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

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
