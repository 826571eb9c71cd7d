package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/service"
)

func (a verbs) logsCommand() *cobra.Command {
	var w which
	var lines int
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs",
		Short: "Show the service's log",
		Long:  "Show the service's log: systemd's journal, or the file that `run --log-file` writes.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if lines < 0 {
				return control.Usage(fmt.Sprintf("-n %d is negative", lines), "-n takes the number of lines to show")
			}
			t, err := a.service(w)
			if err != nil {
				return err
			}
			st, err := t.Status(cmd.Context())
			if err != nil {
				return err
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
	w.addTo(cmd)
	return cmd
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

// Log returns the last lines of the service's log.
func Log(ctx context.Context, a *show.App, lines int) (string, error) {
	t, err := OwnService(a)
	if err != nil {
		return "", err
	}
	argv, err := t.LogCommand(lines, false)
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).Output()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w", argv[0], err)
	}
	return string(out), nil
}
