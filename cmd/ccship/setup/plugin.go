package setup

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/service"
	"github.com/ccship/ccship/packaging"
)

// pluginPlace is what `plugin --json` prints.
type pluginPlace struct {
	SchemaVersion int    `json:"schema_version"`
	Path          string `json:"path"`
	Installed     bool   `json:"installed"`         // the folder is there
	Command       string `json:"command,omitempty"` // of install: it has Claude Code take the plugin
}

// leaveCommand makes Claude Code uninstall the plugin.
const leaveCommand = "claude plugin uninstall ccship@ccship && claude plugin marketplace remove ccship"

// PluginDir returns where the plugin is put.
func PluginDir(c config.Config) string { return filepath.Join(c.StateDir, "claude-plugin") }

func (a verbs) pluginCommand() *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "Write the Claude Code plugin, and print the command that installs it",
		Long: "Write the plugin into ccship's own folder, and print the command by which Claude Code installs it. " +
			"It shows Claude the session's linked documents and checkpoints, and gives it ccship's tools. Nothing " +
			"below ~/.claude is touched. With --remove, remove the folder, after Claude Code has uninstalled the " +
			"plugin.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, err := a.Config()
			if err != nil {
				return err
			}
			if remove {
				return a.uninstallPlugin(c)
			}
			return a.installPlugin(c)
		},
	}
	cmd.Flags().BoolVar(&remove, "remove", false, "remove the plugin's folder")
	a.AddJSON(cmd)
	return cmd
}

func (a verbs) installPlugin(c config.Config) error {
	dir := PluginDir(c)
	if err := writePlugin(dir); err != nil {
		return fmt.Errorf("write plugin: %w", err)
	}
	command := "claude plugin marketplace add " + term.Quote(dir) + " && claude plugin install ccship@ccship"
	if a.JSON {
		return a.PrintJSON(pluginPlace{control.SchemaVersion, dir, true, command})
	}
	err := a.Print(fmt.Sprintf("The plugin is in %s. Install it in Claude Code:\n  %s\n"+
		"or try it in one session:\n  claude --plugin-dir %s\n", dir, command, term.Quote(dir)))
	if err != nil {
		return err
	}
	self, err := service.OwnPath()
	if err != nil {
		return err
	}
	if found, err := exec.LookPath("ccship"); err != nil || !show.SamePath(found, self) {
		a.Say("the plugin runs `ccship` from PATH, but PATH does not lead to %s: put its folder first on PATH", self)
	}
	return nil
}

// uninstallPlugin removes the plugin. Claude Code before 2.1 cannot uninstall a plugin whose folder is gone.
func (a verbs) uninstallPlugin(c config.Config) error {
	dir := PluginDir(c)
	known := func(root string) bool { return config.KnowsMarketplace(filepath.Dir(root), dir) }
	if slices.ContainsFunc(c.Roots, known) {
		return control.Failed("Claude Code still has the plugin",
			"run `"+leaveCommand+"`, then this command again")
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove plugin: %w", err)
	}
	if a.JSON {
		return a.PrintJSON(pluginPlace{SchemaVersion: control.SchemaVersion, Path: dir})
	}
	return a.Print("The plugin is removed from " + dir + ".\n")
}

// writePlugin makes dir hold the plugin's files and no others. The new folder takes the old one's place whole.
func writePlugin(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), ".claude-plugin-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(fresh) }() // what is left of it is overlooked by everyone
	files := packaging.Plugin()
	err = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		to := filepath.Join(fresh, filepath.FromSlash(name))
		if err != nil || name == "." {
			return err
		}
		if d.IsDir() {
			return os.Mkdir(to, 0o700)
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		return os.WriteFile(to, content, 0o600)
	})
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(fresh, dir)
}
