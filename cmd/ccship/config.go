package main

import (
	"cmp"
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
