package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
)

// allKinds is the --timeline without a value.
const allKinds = "all"

// showOptions are the flags of `ccship show`.
type showOptions struct {
	library.View
	generation int64
	limit      int
	timeline   string // kinds, with commas; "": no timeline
}

func (a *app) showCommand() *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use:   "show SESSION",
		Short: "Show what a conversation is about, how it ended, and what happened in it",
		Long: "Show what a conversation is about, and its last messages.\n\nWith --timeline, list prompts, " +
			"commands, compactions, cleared contexts, rewinds, interruptions, checkpoints, documents, agents, " +
			"errors and tool calls of 10 seconds or more, with time and duration. Durations leave out the time in " +
			"which Claude Code waited for you; with a ≤ they may contain it.",
		Example:           "  ccship show 3f6b2c1d\n  ccship show 3f6b2c1d --timeline=prompt,error",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeSession,
		RunE: show.Interruptible(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if o.timeline != "" {
				return a.timeline(ctx, args[0], o)
			}
			if err := chosenGeneration(cmd, o.generation, &o.View.Generation); err != nil {
				return err
			}
			if o.Messages = o.limit; !cmd.Flags().Changed("limit") {
				o.Messages = 12
			}
			return a.showSession(ctx, args[0], o)
		}),
	}
	cmd.Flags().StringVar(&o.User, "user", "", userUsage)
	cmd.Flags().StringVar(&o.Machine, "machine", "", "of this `machine`: its host name, or the beginning of its id")
	cmd.Flags().Int64Var(&o.generation, "generation", 0, "an older `generation`, from before a rewind")
	cmd.Flags().IntVar(&o.limit, "limit", 0, "how many of the last messages or events; without it 12 messages, all events")
	cmd.Flags().StringVar(&o.timeline, "timeline", "", "what happened, and how long it took; or only these `kinds`")
	cmd.Flags().Lookup("timeline").NoOptDefVal = allKinds
	a.completeFlag(cmd, "timeline", library.TimelineKinds())
	a.AddJSON(cmd)
	return cmd
}

func (a *app) showSession(ctx context.Context, session string, o showOptions) error {
	if o.limit < 0 || o.limit > 200 {
		return control.Usage("--limit must be 0 to 200", "`ccship export` has the whole conversation")
	}
	l, err := a.library(ctx)
	if err != nil {
		return err
	}
	shown, err := l.Show(ctx, session, o.View)
	return show.Answer(&a.App, shown, err, a.View().Session)
}

// chosenGeneration sets into to the generation that was asked for, if one was.
func chosenGeneration(cmd *cobra.Command, generation int64, into **int64) error {
	if !cmd.Flags().Changed("generation") {
		return nil
	}
	if generation < 0 {
		return control.Usage("--generation must be 0 or more", "")
	}
	*into = &generation
	return nil
}
