package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/daemon"
)

func (a *app) runCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Run the daemon in the foreground, as the service does",
		Long:  "Run the daemon in the foreground until SIGTERM or Ctrl-C. Its log goes to standard error.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config()
			if err != nil {
				return err
			}
			if err := c.CheckKey(); err != nil {
				return err
			}
			a.warnRoots(c)
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			return daemon.Run(ctx, c)
		},
	}
}

// warnRoots names the folders that cannot be read. The daemon goes on: it reads them as soon as it may.
func (a *app) warnRoots(c daemon.Config) {
	for _, root := range c.Roots {
		var problem *daemon.ConfigError
		if err := checkRoot(root); errors.As(err, &problem) {
			a.say("ccship: %s; it is tried again until it can\nhint: %s", problem.Message, problem.Hint)
		}
	}
}

// checkRoot says what is wrong with a folder of projects. One that does not exist yet is fine: Claude Code makes it.
func checkRoot(root string) error {
	info, err := os.Stat(root)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && !info.IsDir() {
		return &daemon.ConfigError{Message: fmt.Sprintf("root %s is no folder", root), Hint: "roots names the folders that hold Claude Code's projects"}
	}
	if err == nil {
		_, err = os.ReadDir(root)
	}
	if err != nil {
		return &daemon.ConfigError{Message: fmt.Sprintf("root %s cannot be read: %v", root, errors.Unwrap(err)), Hint: "make it readable for this user, or name another one in roots"}
	}
	return nil
}
