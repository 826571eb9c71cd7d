package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/store"
)

func (p *cli) newRebuild() *cobra.Command {
	c := &cobra.Command{
		Use:   "rebuild",
		Short: "Derive titles, messages, usage and search text again from the stored lines",
		Long: "Derive titles, messages, usage and search text again from the stored lines. Servers can keep " +
			"running; until it is done, searches miss sessions.",
		Args: wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withStore(c, func(s store.Store) error {
				if err := s.ResetDerived(c.Context()); err != nil {
					return err
				}
				began := time.Now()
				all, err := s.Lag(c.Context())
				if err != nil {
					return err
				}
				if err := deriveAll(c.Context(), s, all, newProgress(c.ErrOrStderr())); err != nil {
					return err
				}
				took := time.Since(began).Round(time.Millisecond)
				return term.Printf(c.ErrOrStderr(), "%d transcripts derived in %v\n", all, took)
			})
		},
	}
	return c
}

// lagEvery is the time between two looks at what is left.
const lagEvery = 200 * time.Millisecond

// deriveAll derives until nothing is left.
func deriveAll(ctx context.Context, s store.Store, all int64, p *progress) error {
	done := errors.New("done")
	err := together(ctx,
		(&derive.Deriver{Store: s, Log: slog.New(slog.DiscardHandler)}).Run,
		func(ctx context.Context) error {
			tick := time.NewTicker(lagEvery)
			defer tick.Stop()
			for {
				left, err := s.Lag(ctx)
				if err != nil {
					return err
				}
				if left == 0 {
					return done
				}
				p.say("%d of %d transcripts", max(0, all-left), all)
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-tick.C:
				}
			}
		})
	if errors.Is(err, done) {
		return nil
	}
	return err
}
