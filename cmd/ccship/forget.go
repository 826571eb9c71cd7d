package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/daemon/remote"
)

// wholeID is the length of a session's id: it means one session, whether the server can be asked or not.
const wholeID = 36

// lookTime is how long a server may take to say what it has of the session.
const lookTime = 10 * time.Second

func (a *app) forgetCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "forget SESSION",
		Short: "Remove a conversation from the server for good, and never send it again",
		Long: "Remove a session and its agents from the server, the outbox and the dead letters, for good; it is " +
			"never sent or stored again. The files on disk stay, and so does what the server has of the prompt " +
			"history (history.jsonl).",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeSession,
		RunE: show.Interruptible(func(ctx context.Context, _ *cobra.Command, args []string) error {
			client, err := a.DaemonClient(ctx)
			if err != nil {
				return err
			}
			l, err := a.library(ctx)
			if err != nil {
				return err
			}
			soon, cancel := context.WithTimeoutCause(ctx, lookTime, fmt.Errorf("no answer for %s", lookTime))
			defer cancel()
			found, err := l.Find(soon, args[0])
			whole := len(args[0]) >= wholeID && remote.Is(err, control.CodeUnreachable)
			if whole || remote.Is(err, control.CodeNoSession) { // the daemon may remember more than disk and server have
				found, err = library.Found{Session: args[0]}, nil
			}
			if err != nil {
				return err
			}
			if !yes {
				if err := a.confirmForget(ctx, found); err != nil {
					return err
				}
			}
			result, err := client.Forget(ctx, control.ForgetRequest{Session: found.Session})
			if err != nil {
				return err
			}
			return a.showForgotten(result)
		}),
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	a.AddJSON(cmd)
	return cmd
}

// confirmForget asks before what cannot be undone.
func (a *app) confirmForget(ctx context.Context, f library.Found) error {
	k := term.NewAsker(a.Stderr)
	if k == nil {
		return control.Usage("this removes session "+f.Session+" for good",
			"add --yes to confirm")
	}
	title := ""
	for _, s := range f.Stored {
		title = term.Printable(s.Summary.Title)
	}
	if title != "" {
		a.Say("%s", term.Cut(title, 100))
	}
	sure, err := k.Yes(ctx, "remove session "+f.Session+" from the server for good?", false)
	if err == nil && !sure {
		return control.NewError("interrupted", "nothing was removed", "run it again, or with --yes")
	}
	return err
}

func (a *app) showForgotten(r control.ForgetResult) error {
	err := show.Answer(&a.App, r, nil, show.Forgotten)
	switch {
	case err == nil && len(r.Pending) > 0:
		return show.SilentError{Code: show.ExitUnreachable}
	case err == nil && len(r.Kept) > 0:
		return show.SilentError{Code: show.ExitFailed}
	}
	return err
}
