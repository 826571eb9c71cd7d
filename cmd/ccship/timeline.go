package main

import (
	"context"
	"slices"
	"time"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/transcript/session"
)

func (a *app) timeline(ctx context.Context, session string, o showOptions) error {
	if o.limit < 0 {
		return control.Usage("--limit must be 0 or more", "see `ccship show --help`")
	}
	var kinds []string
	if o.timeline != allKinds {
		var err error
		if kinds, err = listed("--timeline", o.timeline, library.TimelineKinds()); err != nil {
			return err
		}
	}
	l, err := a.library(ctx)
	if err != nil {
		return err
	}
	which := library.Copy{Machine: o.Machine, User: o.User}
	t, err := l.Timeline(ctx, session, which, kinds, func(session string) []library.Moment {
		return a.checkpointMoments(ctx, session)
	})
	if o.limit > 0 {
		t.Moments = t.Moments[max(0, len(t.Moments)-o.limit):]
	}
	return show.Answer(&a.App, t, err, a.View().Timeline)
}

// checkpointMoments returns a session's checkpoints, as far as a daemon runs and tells within a moment.
func (a *app) checkpointMoments(ctx context.Context, id string) (out []library.Moment) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	client, err := a.DaemonClient(ctx)
	if err != nil {
		return nil
	}
	found, err := client.Checkpoints(ctx, control.CheckpointsQuery{Session: id, Page: control.Page{Limit: 1000}})
	if err != nil {
		return nil
	}
	for _, c := range found.Checkpoints {
		out = append(out, library.Moment{Moment: session.Moment{Kind: session.TimelineCheckpoint, At: c.CreatedAt,
			Text: c.TriggerType, Before: c.TokensUsed}})
	}
	slices.Reverse(out)
	return out
}
