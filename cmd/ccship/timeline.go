package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
)

// timelineOptions are the flags of `ccship sessions timeline`.
type timelineOptions struct {
	library.Copy
	kinds string
	limit int
}

func (a verbs) sessionsTimeline() *cobra.Command {
	var o timelineOptions
	cmd := &cobra.Command{
		Use:   "timeline SESSION",
		Short: "Show what happened in a conversation, and how long it took",
		Long: "List prompts, commands, compactions, cleared contexts, rewinds, interruptions, checkpoints, documents, " +
			"agents, errors and tool calls of 10 seconds or more, each with its time and duration.\n\n" +
			"A session whose transcript is on this machine is read from disk; others come from the server.\n\n" +
			"Durations leave out the time in which Claude Code waited for you, as far as the transcript tells; that time is " +
			"shown beside them. Where the transcript does not tell, a duration has a ≤ before it.",
		Example:           "  ccship sessions timeline 3f6b2c1d --kind prompt,error",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeSession,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.timeline(cmd, args[0], o) },
	}
	cmd.Flags().StringVar(&o.kinds, "kind", "", "only these, separated by commas: "+
		strings.Join(library.TimelineKinds(), ", "))
	cmd.Flags().IntVar(&o.limit, "limit", 0, "only the last ones, at most this many; 0 is all")
	cmd.Flags().StringVar(&o.User, "user", "", userUsage)
	cmd.Flags().StringVar(&o.Machine, "machine", "",
		"the server's copy of this `machine`: its host name, or the beginning of its id")
	a.AddJSON(cmd)
	return cmd
}

func (a verbs) timeline(cmd *cobra.Command, session string, o timelineOptions) error {
	if o.limit < 0 {
		return control.Usage("--limit must be 0 or more", "see `ccship sessions timeline --help`")
	}
	kinds, err := listed("--kind", o.kinds, library.TimelineKinds())
	if err != nil {
		return err
	}
	ctx, stop := show.UntilSignal(cmd.Context())
	defer stop()
	l, err := a.library(ctx)
	if err != nil {
		return err
	}
	t, err := l.Timeline(ctx, session, o.Copy, kinds, func(session string) []library.Moment {
		return a.checkpointMoments(ctx, session)
	})
	if err != nil {
		return err
	}
	if o.limit > 0 {
		t.Moments = t.Moments[max(0, len(t.Moments)-o.limit):]
	}
	if a.JSON {
		return a.PrintJSON(struct {
			SchemaVersion int `json:"schema_version"`
			library.Timeline
		}{control.SchemaVersion, t})
	}
	return a.Print(a.View().Timeline(t))
}

// listed are words separated by commas, all of which must be known.
func listed(flag, text string, known []string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	var out []string
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); !slices.Contains(known, word) {
			return nil, control.Usage(fmt.Sprintf("%s has no %q", flag, word), "it knows "+strings.Join(known, ", "))
		}
		out = append(out, word)
	}
	return out, nil
}

// checkpointMoments are a session's checkpoints, as far as a daemon runs and tells within a moment.
func (a verbs) checkpointMoments(ctx context.Context, session string) (out []library.Moment) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	client, _, err := a.DaemonClient(ctx)
	if err != nil {
		return nil
	}
	found, err := client.Checkpoints(ctx, control.CheckpointsQuery{Session: session, Page: control.Page{Limit: 1000}})
	if err != nil {
		return nil
	}
	for _, c := range found.Checkpoints {
		out = append(out, library.Moment{Kind: "checkpoint", At: c.CreatedAt, Text: c.TriggerType, Before: c.TokensUsed})
	}
	slices.Reverse(out)
	return out
}
