package setup

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/control"
)

func (a verbs) startCommand(w *which) *cobra.Command {
	const short = "Start the installed service"
	return a.controlCommand(w, "start", short, func(ctx context.Context, t *theService) error {
		st, err := t.Status(ctx)
		if err != nil {
			return err
		}
		if st.Installed {
			err = t.foreign(ctx, st)
		}
		if err != nil {
			return err
		}
		if err := t.Start(ctx); err != nil {
			return err
		}
		return a.runs(ctx, t)
	})
}

func (a verbs) stopCommand(w *which) *cobra.Command {
	const short = "Stop the service until the next login, boot or start"
	return a.controlCommand(w, "stop", short, func(ctx context.Context, t *theService) error {
		if err := t.Stop(ctx); err != nil {
			return err
		}
		return a.Print("stopped; nothing is lost: lines written from now on are read at the next start\n")
	})
}

func (a verbs) restartCommand(w *which) *cobra.Command {
	const short = "Stop the service and start it again"
	return a.controlCommand(w, "restart", short, func(ctx context.Context, t *theService) error {
		if err := t.Restart(ctx); err != nil {
			return err
		}
		return a.runs(ctx, t)
	})
}

func (a verbs) controlCommand(w *which, verb, short string,
	do func(context.Context, *theService) error) *cobra.Command {
	return &cobra.Command{
		Use:   verb,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: show.Interruptible(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			t, err := a.service(*w)
			if err != nil {
				return err
			}
			return do(ctx, t)
		}),
	}
}

// runs waits for the daemon's answer and says so.
func (a verbs) runs(ctx context.Context, t *theService) error {
	var status control.Status
	_, status, err := t.answered(ctx)
	if err != nil {
		return err
	}
	return a.Print(fmt.Sprintf("running (pid %d)\n", status.PID))
}
