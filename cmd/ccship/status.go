package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/cli"
	"github.com/ccship/ccship/daemon/control"
)

func (a *app) statusCommand() *cobra.Command {
	var watch, line bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what the daemon is doing",
		Long: "Show what the daemon is doing. A server that has not answered for 10 seconds is asked for an answer first, for at most a " +
			"second; with --line and --watch nobody waits for that. " +
			"Exit code 0 when the daemon answers, whatever it says of the servers; 1 when it does not answer; 3 when it is not running.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case line && (watch || a.JSON):
				return control.Usage("--line goes with neither --watch nor --json", "choose one of them")
			case line:
				return a.statusLine(cmd.Context())
			}
			c, err := a.Config()
			if err != nil {
				return err
			}
			paths := cli.Sockets(c)
			if watch {
				return a.watchStatus(cmd.Context(), paths)
			}
			_, status, err := control.ReachFor(cmd.Context(), paths, control.StatusQuery{Probe: control.ProbeWait})
			if err != nil {
				return a.noStatus(err)
			}
			if a.JSON {
				return a.PrintJSON(status)
			}
			return a.Print(a.View().Status(status))
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "keep showing it until Ctrl-C")
	cmd.Flags().BoolVar(&line, "line", false, "print one short line and nothing on stderr, for a status line")
	a.AddJSON(cmd)
	return cmd
}

// noStatus turns "not running" into the document that says so, for --json.
func (a *app) noStatus(err error) error {
	if !a.JSON || !errors.Is(err, control.ErrNotRunning) {
		return err
	}
	if err := a.PrintJSON(control.Status{SchemaVersion: control.SchemaVersion}); err != nil {
		return err
	}
	return cli.Silent{Code: cli.ExitNotRunning}
}
