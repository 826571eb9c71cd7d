package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

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
				return a.showFiles(cmd.Context(), files, lines, follow)
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

// followBeat is the time between two looks at files that may grow.
const followBeat = 200 * time.Millisecond

// showFiles prints the last lines of files, each below its name, and with follow what is added to them.
func (a verbs) showFiles(ctx context.Context, files []string, lines int, follow bool) error {
	ctx, stop := show.UntilSignal(ctx)
	defer stop()
	ends := make([]int64, len(files))
	for i, path := range files {
		text, err := os.ReadFile(path) // openLog keeps it small
		if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
		ends[i] = int64(len(text))
		if err := a.Print("==> " + path + "\n" + lastLines(string(text), lines)); err != nil {
			return err
		}
	}
	for follow && show.Sleep(ctx, followBeat) == nil {
		for i, path := range files {
			text, err := os.ReadFile(path)
			if err != nil {
				return fmt.Errorf("read log: %w", err)
			}
			if int64(len(text)) < ends[i] {
				ends[i] = 0 // it was begun anew
			}
			if err := a.Print(string(text[ends[i]:])); err != nil {
				return err
			}
			ends[i] = int64(len(text))
		}
	}
	return nil
}

// lastLines returns the last n lines of a text.
func lastLines(text string, n int) string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return strings.Join(lines[max(0, len(lines)-n):], "")
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
