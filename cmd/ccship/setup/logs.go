package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/service"
)

func (a verbs) logsCommand(w *which) *cobra.Command {
	var lines int
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs",
		Short: "Show the log of the service, or of ccship up",
		Long: "Show the service's log: systemd's journal, or the file that `run --log-file` writes. Without a service, " +
			"show what `ccship up` writes: the logs of the daemon and of the server.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if lines < 0 {
				return control.Usage(fmt.Sprintf("-n %d is negative", lines), "-n takes the number of lines to show")
			}
			t, err := a.service(*w)
			if err != nil {
				return err
			}
			st, err := t.Status(cmd.Context())
			if err != nil {
				return err
			}
			if files := upLogs(t.config); !st.Installed && len(files) > 0 {
				return a.show(cmd.Context(), service.TailCommand(lines, follow, files...))
			}
			if st.Manager == service.None {
				return t.Start(cmd.Context()) // says why there is no service
			}
			argv, err := t.LogCommand(lines, follow)
			if err != nil {
				return err
			}
			return a.show(cmd.Context(), argv)
		},
	}
	cmd.Flags().IntVarP(&lines, "lines", "n", 50, "how many of the last lines to show")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print new lines as they are written, until Ctrl-C")
	return cmd
}

// upLogs returns the logs that `ccship up` has written.
func upLogs(c config.Config) (files []string) {
	home := Home{Dir: show.UpDir(c)}
	for _, name := range []string{daemonLog, serverLog} {
		if path := home.File(name); show.Exists(path) {
			files = append(files, path)
		}
	}
	return files
}

// show runs a program on this one's terminal. Ctrl-C reaches both, and ends a program that follows the log.
func (a verbs) show(ctx context.Context, argv []string) error {
	ignored, stop := show.IgnoreInterrupts()
	defer stop()
	child := exec.CommandContext(ctx, argv[0], argv[1:]...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, a.Stdout, a.Stderr
	err := child.Run()
	var exit *exec.ExitError
	switch {
	case err == nil || ignored():
		return nil
	case errors.As(err, &exit):
		return control.Failed(argv[0]+" could not show the log ("+exit.String()+")",
			"`ccship doctor` says whether the service works")
	}
	return control.Failed(fmt.Sprintf("show log: %v", err),
		"install "+argv[0]+", which shows the log on this system")
}
