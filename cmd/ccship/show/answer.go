package show

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/daemon/control"
)

// Answer prints an answer: with --json as one document, else as text. Without an answer it returns err, which says why.
func Answer[A any](a *App, answer A, err error, text func(A) string) error {
	switch {
	case err != nil:
		return err
	case a.JSON:
		return a.PrintJSON(answer)
	}
	return a.Print(text(answer))
}

// Ask makes one call to the daemon, and prints its answer.
func Ask[Q, A any](ctx context.Context, a *App, call func(*control.Client, context.Context, Q) (A, error), q Q,
	text func(A) string) error {
	client, err := a.DaemonClient(ctx)
	if err != nil {
		return err
	}
	answer, err := call(client, ctx, q)
	return Answer(a, answer, err, text)
}

// Interruptible makes a command's code run until the user or the system asks it to stop.
func Interruptible(
	run func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := UntilSignal(cmd.Context())
		defer stop()
		return run(ctx, cmd, args)
	}
}

// Group makes a command that only holds others.
func Group(use, short, long string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(verbs...)
	return cmd
}
