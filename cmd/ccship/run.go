package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/internal/service"
	"github.com/ccship/ccship/internal/sys"
)

func (a *app) runCommand() *cobra.Command {
	var logPath string
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the daemon in the foreground, as the service does",
		Long: "Run the daemon in the foreground until SIGTERM or Ctrl-C. SIGHUP makes it read its configuration " +
			"again. Exit code 2 is a mistake in the configuration, which a restart cannot fix.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if logPath != "" {
				log, err := openLogFile(logPath, show.MaxLog)
				if err != nil {
					return err
				}
				a.Stderr = log // not closed: the error that ends the run is written to it
			}
			err := a.runDaemon(cmd.Context())
			if err != nil && service.RestartsAnyFailure() && show.ExitCode(show.Describe(err)) == show.ExitUsage {
				a.Report(err)
				return show.SilentError{Code: show.ExitOK}
			}
			return err
		},
	}
	cmd.Flags().StringVar(&logPath, "log-file", "", "write the log to this `file`, and start a new one at 8 MiB")
	return cmd
}

// garbage is how much may gather in memory, and never more than is alive: it runs all day.
const (
	garbage        = 12 << 20
	garbagePercent = 100
)

// runDaemon runs the daemon until it is asked to end.
func (a *app) runDaemon(ctx context.Context) error {
	c, err := a.Config()
	if err != nil {
		return err
	}
	if _, err := c.APIKey(); err != nil {
		return err
	}
	c.Log = c.TextLog(a.Stderr)
	a.warnRoots(c)
	ctx, reloads, stop := show.UntilSignalOrReload(ctx)
	defer stop()
	sys.BoundHeap(garbage, garbagePercent)
	c.Hangup, c.Managed = reloads, service.Managed()
	return service.Host(ctx, func(ctx context.Context) error { return daemon.Run(ctx, c) })
}

// warnRoots names the folders that cannot be read. The daemon still starts, and reads them as soon as it can.
func (a *app) warnRoots(c config.Config) {
	for _, root := range c.Roots {
		var problem *config.Error
		if err := checkRoot(root); errors.As(err, &problem) {
			a.Say("ccship: %s; the daemon tries again until it succeeds\nhint: %s", problem.Message, problem.Hint)
		}
	}
}

// checkRoot says what is wrong with a folder of projects. It need not exist yet: Claude Code creates it.
func checkRoot(root string) error {
	info, err := os.Stat(root)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && !info.IsDir() {
		return &config.Error{Message: fmt.Sprintf("root %s is not a folder", root),
			Hint: "set roots to the folders that hold Claude Code's projects"}
	}
	if err == nil {
		_, err = os.ReadDir(root)
	}
	if err != nil {
		return &config.Error{Message: fmt.Sprintf("root %s cannot be read: %v", root, errors.Unwrap(err)),
			Hint: "make it readable by this user, or name another one in roots"}
	}
	return nil
}
