package proof

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// result counts where the lines are.
func (s *Syncer) result(ctx context.Context, err error) control.SyncResult {
	stats, usage := s.Files.Stats(), s.State.Outbox.Usage()
	r := control.SyncResult{
		SchemaVersion: control.SchemaVersion, Done: err == nil, Lines: stats.Lines,
		Dead: usage.Dead, Withheld: usage.Withheld, Waiting: usage.Entries,
	}
	r.Retired = s.Servers.RetiredServers(usage)
	for _, f := range r.Retired {
		r.Waiting -= f.Entries
	}
	r.Excluded = s.excludedLines(ctx)
	r.Acknowledged = max(0, r.Lines-r.Waiting-s.deadLines(ctx, r.Dead)-r.Withheld-r.Excluded)
	if unlisted := s.Unlisted(); err == nil && len(unlisted) > 0 {
		// Its content is unknown, so nobody may call it delivered.
		r.Done, r.Reason, r.Detail = false, ReasonUnreadable, "cannot list "+unlisted[0]
		return r
	}
	if err == nil {
		return r
	}
	if unread, ok := errors.AsType[unreadError](err); ok {
		r.Reason, r.Detail = ReasonUnreadable, unread.Error()
		return r
	}
	r.Reason, r.Detail, r.Hint = s.Servers.Obstacle()
	switch {
	case errors.Is(err, errPaused):
		r.Reason, r.Detail, r.Hint = ReasonPaused, errPaused.Error(), ""
	case r.Reason != "":
	case !s.Router.AnyServer():
		r.Reason, r.Detail = reasonNoServer, "no server is set"
	case usage.Full != "":
		r.Reason, r.Detail = reasonFull, "reading has stopped: "+map[string]string{"cap": "the outbox is full",
			"disk": "the disk has less free than head_room"}[usage.Full]
	case errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
		r.Reason, r.Detail = ReasonTimeout, "the time limit has passed"
	default:
		r.Reason, r.Detail = ReasonTimeout, err.Error()
	}
	return r
}

// deadLines counts how many of all dead letters are lines on disk.
func (s *Syncer) deadLines(ctx context.Context, all int64) int64 {
	if all == 0 {
		return 0
	}
	letters, err := s.State.DeadLetters.List(context.WithoutCancel(ctx))
	if err != nil {
		s.Log.Warn("cannot list the dead letters", "err", err)
	}
	for i := range letters {
		if letters[i].Batch.Items > 0 || letters[i].Reason == state.ReasonReplaced {
			all--
		}
	}
	return all
}

// excludedLines counts the lines excluded by their type, in a history by their project, or in forgotten sessions.
func (s *Syncer) excludedLines(ctx context.Context) (n int64) {
	excluded := s.Router.ExcludedOnDisk(s.Files)
	maps.DeleteFunc(excluded, func(_ tail.FileID, why string) bool { return why != route.Forgotten })
	if len(excluded) == 0 && len(s.Router.Rules().ExcludeTypes) == 0 && !s.Router.History.Any() {
		return 0
	}
	facts, err := s.State.Files.Routings(context.WithoutCancel(ctx))
	if err != nil {
		s.Log.Warn("cannot count the lines left out", "err", err)
		return 0
	}
	for id, f := range facts {
		if excluded[id] == "" {
			n += f.Excluded
		}
	}
	for id := range excluded {
		if t, ok := s.Files.File(id); ok {
			n += t.Cursor.Line
		}
	}
	return n
}

// Unlisted returns the folders that cannot be listed, with the reasons. A root that never existed is left out: Claude
// Code makes it with its first session.
func (s *Syncer) Unlisted() []string {
	var out []string
	for path, err := range s.Files.Unlisted() {
		known := func(t tail.Tracked) bool { return t.Gone == 0 && t.File.Root == path }
		if errors.Is(err, fs.ErrNotExist) && !slices.ContainsFunc(s.Files.Files(), known) {
			continue
		}
		out = append(out, fmt.Sprintf("%s: %v", path, reasonOf(err)))
	}
	slices.Sort(out)
	return out
}

// reasonOf is the system's error without the path.
func reasonOf(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
