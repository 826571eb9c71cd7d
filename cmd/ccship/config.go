package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/setup"
	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
)

// settings is what `config --json` prints.
type settings struct {
	SchemaVersion int            `json:"schema_version"`
	Config        string         `json:"config"`
	Values        []config.Value `json:"values"`
	Files         *places        `json:"files,omitempty"` // with every key
}

// places are the files and folders that are used.
type places struct {
	Config     string   `json:"config"`
	APIKeyFile string   `json:"api_key_file"`
	StateDir   string   `json:"state_dir"`
	State      string   `json:"state"`
	Socket     string   `json:"socket"`
	Log        string   `json:"log"` // of the service: a file, or "journal"
	Up         string   `json:"up"`
	Plugin     string   `json:"plugin"`
	Roots      []string `json:"roots"`
}

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config [KEY [VALUE…]]",
		Short: "Show or change the configuration, and show every file that is used",
		Long: "Show or change the configuration: all of it with where each value comes from and every file that is used, " +
			"the value of one key, or, with values, write the key into the configuration file; several values make a list. " +
			"A flag wins over a CCSHIP_* variable, the variable over the file, and the file over the default. " +
			"A running daemon reads the file again by itself.\n\n" + optionTable(),
		Example:           "  ccship config\n  ccship config server_url\n  ccship config roots ~/a ~/b",
		ValidArgsFunction: completeKeys,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1 && a.JSON:
				return control.Usage("--json shows values and writes none", "leave out --json")
			case len(args) > 1:
				return a.setOption(cmd, args[0], args[1:])
			}
			c, err := a.Config()
			if err != nil {
				return err
			}
			if len(args) > 0 {
				return a.printOption(&c, args[0])
			}
			return a.printConfig(&c)
		},
	}
	a.AddJSON(cmd)
	return cmd
}

// optionTable returns the reference of all keys.
func optionTable() string {
	var b strings.Builder
	for _, o := range config.Options() {
		fmt.Fprintf(&b, "  %-24s %s\n", o.Name, o.Doc)
		fmt.Fprintf(&b, "  %-24s   %s", "", o.Type())
		if o.Default != "" {
			fmt.Fprintf(&b, "; default %s", o.Default)
		}
		if !o.Live {
			b.WriteString("; needs a restart")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (a *app) printConfig(c *config.Config) error {
	files := &places{
		Config: c.Path, APIKeyFile: c.APIKeyFile, StateDir: c.StateDir, State: filepath.Join(c.StateDir, "state.db"),
		Socket: c.Socket, Log: cmp.Or(setup.LogPath(*c), "journal"), Up: show.UpDir(*c), Plugin: setup.PluginDir(*c),
		Roots: c.Roots,
	}
	if a.JSON {
		return a.PrintJSON(settings{control.SchemaVersion, c.Path, c.Values(), files})
	}
	var b strings.Builder
	for _, v := range c.Values() {
		line := term.Pad(v.TOML(), 44) + " # " + string(v.Origin)
		if v.Source != "" {
			line += ": " + v.Source
		}
		b.WriteString(line + "\n")
	}
	b.WriteString("\n# files\n")
	row := func(name, path string) { b.WriteString("# " + term.Pad(name, 14) + path + "\n") }
	row("config", files.Config)
	row("api_key_file", files.APIKeyFile)
	row("state", files.State)
	row("socket", files.Socket)
	row("log", files.Log)
	row("up", files.Up)
	row("plugin", files.Plugin)
	for _, root := range files.Roots {
		row("root", root)
	}
	return a.Print(b.String())
}

func (a *app) printOption(c *config.Config, key string) error {
	v, err := c.Lookup(key)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(settings{control.SchemaVersion, c.Path, []config.Value{v}, nil})
	}
	return a.Print(v.Text() + "\n")
}

func (a *app) setOption(cmd *cobra.Command, key string, values []string) error {
	path, err := a.ConfigPath()
	if err != nil {
		return err
	}
	if err := config.WriteOption(path, key, values, nil); err != nil {
		return err
	}
	a.Say("%s is set in %s", key, path)
	if o, ok := config.LookupOption(key); ok && os.Getenv(o.Env()) != "" {
		a.Say("%s in the environment wins over it", o.Env())
	}
	return a.takeOver(cmd.Context(), path, key)
}

// excludeKey is the option that the verbs edit.
const excludeKey = "exclude_projects"

func (a *app) excludeCommand() *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use:   "exclude [PATTERN…]",
		Short: "Keep projects on this machine",
		Long: "Keep the conversations of folders, and of all folders below them, on this machine only, by path or " +
			"a pattern such as '~/clients/*' or '**/private'. Without one, list what is excluded, why, and how many " +
			"transcripts. With --rm, deliver them again.\n\nA file named .ccshipignore in a folder does the same. " +
			"What was already sent stays on the server.",
		Example: "  ccship exclude .\n  ccship exclude '~/clients/*' '**/private'\n  ccship exclude --rm .",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if !remove {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return a.completePatterns(cmd, args, begun)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case remove && len(args) == 0:
				return control.Usage("--rm names nothing", "`ccship exclude` shows what is excluded")
			case remove:
				return a.editExcludes(cmd.Context(), nil, args)
			case len(args) > 0:
				return a.editExcludes(cmd.Context(), args, nil)
			}
			excludes, err := a.excludes(cmd.Context())
			return show.Answer(&a.App, excludes, err, show.Excludes)
		},
	}
	cmd.Flags().BoolVar(&remove, "rm", false, "stop excluding: their conversations are delivered again")
	a.AddJSON(cmd)
	return cmd
}

// excludes asks the daemon; without one the configuration alone answers.
func (a *app) excludes(ctx context.Context) (control.Excludes, error) {
	client, err := a.DaemonClient(ctx)
	if err == nil {
		return client.Excludes(ctx)
	}
	if !errors.Is(err, control.ErrNotRunning) {
		return control.Excludes{}, err
	}
	c, err := a.Config()
	if err != nil {
		return control.Excludes{}, err
	}
	e := control.Excludes{
		SchemaVersion: control.SchemaVersion, Config: c.Path, Origin: string(c.OriginOf(excludeKey)),
		Patterns: []control.Exclusion{},
	}
	for _, pattern := range c.ExcludeProjects {
		e.Patterns = append(e.Patterns, control.Exclusion{Pattern: pattern})
	}
	return e, nil
}

// editExcludes edits the configuration file and makes a running daemon read it.
func (a *app) editExcludes(ctx context.Context, add, remove []string) error {
	path, err := a.ConfigPath()
	if err != nil {
		return err
	}
	for _, list := range [][]string{add, remove} {
		for i := range list {
			if list[i], err = folderPattern(list[i]); err != nil {
				return err
			}
		}
	}
	edit, err := config.EditList(path, excludeKey, add, remove, nil)
	if err != nil {
		return err
	}
	if len(edit.Missing) > 0 {
		return control.NewError(control.CodeNoPattern, strings.Join(edit.Missing, ", ")+" is not excluded in "+path,
			"`ccship exclude` shows what is excluded, and why")
	}
	o, _ := config.LookupOption(excludeKey)
	if os.Getenv(o.Env()) != "" {
		a.Say("%s in the environment wins over %s", o.Env(), path)
	}
	for _, pattern := range edit.Added {
		a.Say("%s is excluded in %s", pattern, path)
	}
	for _, pattern := range edit.Removed {
		a.Say("%s is no longer excluded in %s", pattern, path)
	}
	if len(edit.Added)+len(edit.Removed) == 0 {
		a.Say("%s is excluded already in %s", strings.Join(add, ", "), path)
	}
	if err := a.takeOver(ctx, path, excludeKey); err != nil || !a.JSON {
		return err
	}
	excludes, err := a.excludes(ctx)
	if err != nil {
		return err
	}
	return a.PrintJSON(excludes)
}

// folderPattern returns the pattern of what someone typed. A folder that exists means itself, whatever characters its
// name has; any other path is a pattern relative to the current folder.
func folderPattern(text string) (string, error) {
	if text == "" { // an unset shell variable must not mean the current folder
		return "", control.Usage("the pattern is empty", "name a folder, or . for this one")
	}
	if strings.HasPrefix(text, "~") || strings.HasPrefix(filepath.ToSlash(text), "**/") {
		return text, nil
	}
	abs, err := filepath.Abs(text)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", text, err)
	}
	if info, err := os.Stat(abs); err == nil && info.IsDir() {
		return config.FolderPattern(abs), nil
	}
	if here := strings.TrimSuffix(abs, filepath.Clean(text)); filepath.IsLocal(text) && here != abs {
		return config.FolderPattern(filepath.Clean(here)) + "/" + filepath.ToSlash(filepath.Clean(text)), nil
	}
	return filepath.ToSlash(abs), nil
}
