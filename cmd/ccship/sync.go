package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
)

func (a *app) syncCommand() *cobra.Command {
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "sync",
		Short: "Check every transcript and try every server now",
		Long: "Check every transcript now, try every server at once and end every pause. With --wait: exit 0 " +
			"once every line that was on disk is acknowledged, a dead letter, excluded or withheld. " +
			"On timeout: exit 4 if the server could not be reached, " +
			"5 if it rejected the API key, else 1.",
		Args: cobra.NoArgs,
		RunE: show.Interruptible(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			if err := positive("timeout", timeout); err != nil {
				return err
			}
			client, err := a.DaemonClient(ctx)
			if err != nil {
				return err
			}
			if _, err := client.Flush(ctx); err != nil { // a server's own Retry-After ends too
				return err
			}
			result, err := client.Sync(ctx, control.SyncRequest{Wait: wait, Timeout: timeout.String()})
			if err != nil {
				return err
			}
			return a.showSync(result, wait)
		}),
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until everything on disk is delivered")
	cmd.Flags().DurationVar(&timeout, "timeout", 20*time.Second, "with --wait: how long to wait")
	a.AddJSON(cmd)
	return cmd
}

// positive refuses a time-out of zero or less.
func positive(flag string, d time.Duration) error {
	if d > 0 {
		return nil
	}
	return control.Usage(fmt.Sprintf("--%s %s is not positive", flag, d), "a duration looks like 20s or 2m")
}

func (a *app) showSync(r control.SyncResult, wait bool) error {
	if a.JSON {
		if err := a.PrintJSON(r); err != nil {
			return err
		}
		if !wait || r.Done {
			return nil
		}
		return show.SilentError{Code: show.ExitCode(show.Unfinished(r))}
	}
	a.sayResumed(r.Resumed)
	if !wait {
		return a.Print("checking every transcript now\n")
	}
	counts := fmt.Sprintf("%s on disk: %s acknowledged, %s, %s excluded, %s withheld, %s waiting\n",
		amount.Counted(r.Lines, "line", "lines"), amount.Count(r.Acknowledged),
		amount.Counted(r.Dead, "dead letter", "dead letters"), amount.Count(r.Excluded),
		amount.Count(r.Withheld), amount.Count(r.Waiting))
	if err := a.Print(counts + show.RetiredServers(r.Retired)); err != nil {
		return err
	}
	if r.Done {
		return nil
	}
	return show.Unfinished(r)
}

// sayResumed says that a sync has ended a pause.
func (a *app) sayResumed(resumed bool) {
	if resumed {
		a.Say("the pause is over")
	}
}
