package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/daemon/remote"
)

// recallOptions are the flags that blame and fix share.
type recallOptions struct {
	remote.Recall
	since string
}

func (a verbs) blameCommand() *cobra.Command {
	o := recallOptions{Recall: remote.Recall{Limit: 20}}
	cmd := &cobra.Command{
		Use:   "blame FILE",
		Short: "List the turns that read or changed a file",
		Long: "List the turns of all conversations on the server in which Claude read or changed a file with its own " +
			"tools, newest first, each with the prompt that led to it. An absolute path is that file. Any other is every file " +
			"whose path ends with it, so it also finds the same file on other machines and in worktrees.",
		Example: "  ccship blame shop/cart.go\n  ccship blame /home/kim/shop/cart.go --kind edit --since 7d",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := listed("--kind", o.Kind, []string{"edit", "read"}); err != nil {
				return err
			}
			return a.recall(cmd, o, func(ctx context.Context, c *remote.Client, r remote.Recall) error {
				turns, more, err := remote.Blame(ctx, c, args[0], r)
				if err != nil {
					return err
				}
				if a.JSON {
					return a.PrintJSON(library.BlameOf(control.SchemaVersion, turns, more))
				}
				return a.Print(a.View().Blame(turns, more))
			})
		},
	}
	cmd.Flags().StringVar(&o.Kind, "kind", "", "only turns that did this: edit, read, or both with a comma")
	a.addRecallFlags(cmd, &o)
	return cmd
}

func (a verbs) fixCommand() *cobra.Command {
	o := recallOptions{Recall: remote.Recall{Limit: 5}}
	cmd := &cobra.Command{
		Use:   "fix TEXT…",
		Short: "Show what was done about an error before",
		Long: "Find where the text of an error occurred in the conversations on the server, newest first, and show the " +
			"edits and commands that followed until the command that had failed succeeded. The text is quoted from " +
			"the conversations; no model is asked. The words of TEXT must be next to each other; if that finds nothing, they " +
			"must be in one error.",
		Example: "  ccship fix 'undefined: total'",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.recall(cmd, o, func(ctx context.Context, c *remote.Client, r remote.Recall) error {
				episodes, err := remote.Fix(ctx, c, strings.Join(args, " "), r)
				if err != nil {
					return err
				}
				if a.JSON {
					return a.PrintJSON(library.FixOf(control.SchemaVersion, episodes))
				}
				return a.Print(a.View().Fix(episodes))
			})
		},
	}
	a.addRecallFlags(cmd, &o)
	return cmd
}

func (a verbs) addRecallFlags(cmd *cobra.Command, o *recallOptions) {
	cmd.Flags().StringVar(&o.Project, "project", "", "only in this project, by its `name`")
	cmd.Flags().StringVar(&o.Session, "session", "", "only in this `session` and its agents")
	cmd.Flags().StringVar(&o.User, "user", "", whoseUsage)
	cmd.Flags().StringVar(&o.since, "since", "", "only lines written since then: 2026-11-01, 36h or 7d")
	cmd.Flags().IntVar(&o.Limit, "limit", o.Limit, "how many at most, up to 100")
	a.AddJSON(cmd)
}

// recall asks the server.
func (a verbs) recall(cmd *cobra.Command, o recallOptions,
	ask func(context.Context, *remote.Client, remote.Recall) error) error {
	if o.Limit < 1 || o.Limit > 100 {
		return control.Usage("--limit must be 1 to 100", "narrow it with --session, --project or --since")
	}
	from, err := show.Since(o.since, time.Now())
	if err != nil {
		return err
	}
	if !from.IsZero() {
		o.Since = from.UTC().Format(time.RFC3339Nano)
	}
	ctx, stop := show.UntilSignal(cmd.Context())
	defer stop()
	l, err := a.onServer(ctx, &o.Session)
	if err != nil {
		return err
	}
	return ask(ctx, l.Server, o.Recall)
}
