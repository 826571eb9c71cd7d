package main

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/setup"
	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
)

// places is what `paths --json` prints.
type places struct {
	SchemaVersion int      `json:"schema_version"`
	Config        string   `json:"config"`
	APIKeyFile    string   `json:"api_key_file"`
	StateDir      string   `json:"state_dir"`
	State         string   `json:"state"`
	Socket        string   `json:"socket"`
	Log           string   `json:"log"` // of the service: a file, or "journal"
	Up            string   `json:"up"`
	Roots         []string `json:"roots"`
}

func (a *app) pathsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "paths",
		Short: "Print every file and folder that is used",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, err := a.Config()
			if err != nil {
				return err
			}
			p := places{
				SchemaVersion: control.SchemaVersion, Config: c.Path, APIKeyFile: c.APIKeyFile,
				StateDir: c.StateDir, State: filepath.Join(c.StateDir, "state.db"), Socket: c.Socket,
				Log: setup.LogPath(c), Up: show.UpDir(c), Roots: c.Roots,
			}
			if p.Log == "" {
				p.Log = "journal"
			}
			if a.JSON {
				return a.PrintJSON(p)
			}
			return a.Print(p.text())
		},
	}
	a.AddJSON(cmd)
	return cmd
}

func (p places) text() string {
	var b strings.Builder
	row := func(name, path string) { b.WriteString(term.Pad(name, 14) + path + "\n") }
	row("config", p.Config)
	row("api_key_file", p.APIKeyFile)
	row("state_dir", p.StateDir)
	row("state", p.State)
	row("socket", p.Socket)
	row("log", p.Log)
	row("up", p.Up)
	for _, root := range p.Roots {
		row("root", root)
	}
	return b.String()
}
