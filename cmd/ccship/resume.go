package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
)

func (a verbs) sessionsResume() *cobra.Command {
	var w library.ResumeRequest
	var here bool
	cmd := &cobra.Command{
		Use:   "resume SESSION",
		Short: "Bring a conversation of any machine here, and print the command that resumes it",
		Long: "Write the session's transcript, those of its agents and the files beside them where Claude Code looks for " +
			"them, and print the command that resumes the session, with the folder to run it in. With --here that folder is " +
			"the current one, otherwise the session's own, if this machine has it. Working directories in the records " +
			"become those of this machine; what was said stays as it is.\n\n" +
			"If several machines have the session, the copy that was written last is brought. If this disk has lines that " +
			"the copy lacks, nothing is written, unless with --force. Until the last file is complete, Claude Code sees " +
			"the session as it was.",
		Example: "  cd ~/work/shop && ccship sessions resume 3f2a9c01 --here\n" +
			"  eval \"$(ccship sessions resume 3f2a9c01 --here)\"",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeSession,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			w.Session = args[0]
			if here {
				if w.Folder, err = os.Getwd(); err != nil {
					return fmt.Errorf("find the current folder: %w", err)
				}
			}
			ctx, stop := show.UntilSignal(cmd.Context())
			defer stop()
			return a.resumeSession(ctx, w)
		},
	}
	cmd.Flags().BoolVar(&here, "here", false, "resume it in the current folder, not in the one that it had")
	cmd.Flags().StringVar(&w.User, "user", "", userUsage)
	cmd.Flags().StringVar(&w.Machine, "machine", "",
		"the copy of this `machine`: its host name, or the beginning of its id")
	cmd.Flags().BoolVar(&w.Force, "force", false,
		"bring it even while it is live, and move a longer transcript on this disk aside")
	a.AddJSON(cmd)
	return cmd
}

// resumeSession brings a session, says on stderr what was done, and prints the command that resumes it.
func (a verbs) resumeSession(ctx context.Context, w library.ResumeRequest) error {
	l, err := a.library(ctx)
	if err != nil {
		return err
	}
	done, err := l.Resume(ctx, w)
	if err != nil {
		return err
	}
	command := show.ResumeCommand(done.Folder, done.Session)
	if a.JSON {
		return a.PrintJSON(struct {
			SchemaVersion int    `json:"schema_version"`
			Command       string `json:"command"`
			library.Resumed
		}{control.SchemaVersion, command, done})
	}
	for _, line := range show.Resumed(done) {
		a.Say("%s", line)
	}
	return a.Print(command + "\n")
}
