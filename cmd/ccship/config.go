package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
)

// settings is what `config show --json` prints.
type settings struct {
	SchemaVersion int            `json:"schema_version"`
	Config        string         `json:"config"`
	Values        []config.Value `json:"values"`
}

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show, change and check the configuration",
		Long: "Show, change and check the configuration. A flag wins over a CCSHIP_* variable, the variable over the file, " +
			"and the file over the default.\n\n" + optionTable(),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.configShow(), a.configGet(), a.configSet(), a.configValidate())
	return cmd
}

// optionTable is the reference of all keys.
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

func (a *app) configShow() *cobra.Command {
	var origin bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print every value in force, as TOML",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, err := a.Config()
			if err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(settings{control.SchemaVersion, c.Path, c.Values()})
			}
			var b strings.Builder
			for _, v := range c.Values() {
				line := v.TOML()
				if origin {
					line = term.Pad(line, 44) + " # " + string(v.Origin)
					if v.Source != "" {
						line += ": " + v.Source
					}
				}
				b.WriteString(line + "\n")
			}
			return a.Print(b.String())
		},
	}
	cmd.Flags().BoolVar(&origin, "origin", false, "say where each value comes from")
	a.AddJSON(cmd)
	return cmd
}

func (a *app) configGet() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get KEY",
		Short: "Print the value of one key; a list prints one item per line",
		Args:  cobra.ExactArgs(1),

		ValidArgsFunction: completeKeys,
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := a.Config()
			if err != nil {
				return err
			}
			v, err := c.Lookup(args[0])
			if err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(settings{control.SchemaVersion, c.Path, []config.Value{v}})
			}
			return a.Print(v.Text() + "\n")
		},
	}
	a.AddJSON(cmd)
	return cmd
}

func (a *app) configSet() *cobra.Command {
	return &cobra.Command{
		Use:   "set KEY VALUE…",
		Short: "Write one key into the configuration file; several values make a list",
		Args:  cobra.MinimumNArgs(2),

		ValidArgsFunction: completeKeys,
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := a.ConfigPath()
			if err != nil {
				return err
			}
			if err := config.WriteOption(path, args[0], args[1:], nil); err != nil {
				return err
			}
			a.Say("%s is set in %s", args[0], path)
			if o, ok := config.LookupOption(args[0]); ok && os.Getenv(o.Env()) != "" {
				a.Say("%s in the environment wins over it", o.Env())
			}
			return a.takeOver(cmd.Context(), path, args[0])
		},
	}
}

func (a *app) configValidate() *cobra.Command {
	return &cobra.Command{
		Use:   "validate",
		Short: "Check the configuration, the key file and the roots",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, err := a.Config()
			if err != nil {
				return err
			}
			if _, err := c.APIKey(); err != nil {
				return err
			}
			for _, root := range c.Roots {
				if err := checkRoot(root); err != nil {
					return err
				}
			}
			return a.Print("valid: " + c.Path + "\n")
		},
	}
}
