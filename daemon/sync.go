package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/delivery"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// Why a sync that waited failed. Servers.Obstacle has more reasons.
const (
	reasonTimeout    = "timeout"
	reasonRefused    = delivery.Refused
	reasonNoServer   = "no_server"
	reasonFull       = "full"
	reasonUnreadable = "unreadable"
	reasonPaused     = "paused"
)

// syncTime is how long a sync waits by default.
const syncTime = time.Minute

// syncPoll is how often a waiting sync looks at the outbox.
const syncPoll = 10 * time.Millisecond

// Sync reads every file at once, verifies what was read before of those that changed, and ends back-off and pauses,
// also one that the user asked for. With Wait it returns when every whole line that was on disk at the call is
// acknowledged, or known not to be sent.
func (d *Daemon) Sync(ctx context.Context, req control.SyncRequest) (control.SyncResult, error) {
	limit := syncTime
	if req.Timeout != "" {
		t, err := time.ParseDuration(req.Timeout)
		if err != nil {
			return control.SyncResult{}, control.Usage(fmt.Sprintf("%q is not a duration", req.Timeout), "for example 20s or 2m")
		}
		limit = t
	}
	resumed, err := d.pause.End(ctx)
	if err != nil {
		return control.SyncResult{}, err
	}
	d.servers.Retry(false)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		changes := d.reconciler.Changes()
		if err = d.readAll(ctx); err == nil && req.Wait {
			err = d.waitDelivered(ctx)
		}
		if err != nil || changes == d.reconciler.Changes() {
			break
		}
	}
	result := d.syncResult(ctx, err)
	result.Resumed = resumed
	return result, nil
}

// waitDelivered returns when everything that was read is acknowledged, and so is what is derived from it.
func (d *Daemon) waitDelivered(ctx context.Context) error {
	if err := d.derive.Wait(ctx); err != nil {
		return err
	}
	if err := d.documents.Wait(ctx); err != nil {
		return err
	}
	if err := d.delivered(ctx); err != nil {
		return err
	}
	return d.checkServers(ctx)
}

// checkServers returns when no server is known to lack what it acknowledged. What a server that does not answer
// acknowledged counts.
func (d *Daemon) checkServers(ctx context.Context) error {
	for _, dest := range d.db.Outbox.Destinations() {
		if d.servers.Retired(dest) {
			continue
		}
		if err := d.reconciler.Check(ctx, dest); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			d.log.Debug("cannot ask for the ledger", "server", dest, "err", err)
		}
	}
	return nil
}

// readAll returns when every whole line on disk is in the outbox, or in a file that is not read.
func (d *Daemon) readAll(ctx context.Context) error {
	for {
		err := d.tailer.Sync(ctx)
		waiting, ok := errors.AsType[*tail.WaitingError](err)
		if !ok {
			return err
		}
		if waiting.Room+waiting.Unread == 0 && d.allExcluded(waiting.Files) {
			return nil
		}
		if !d.router.AnyServer() {
			return err
		}
		if err := pause(ctx, 10*syncPoll); err != nil {
			return err
		}
	}
}

// unlisted returns the folders that cannot be listed, with the reasons. A root that never existed is left out: Claude
// Code makes it with its first session.
func (d *Daemon) unlisted() []string {
	var out []string
	for path, err := range d.tailer.Unlisted() {
		if errors.Is(err, fs.ErrNotExist) && !d.hasFilesBelow(path) {
			continue
		}
		out = append(out, fmt.Sprintf("%s: %v", path, reasonOf(err)))
	}
	slices.Sort(out)
	return out
}

// hasFilesBelow reports whether a known file is below a root.
func (d *Daemon) hasFilesBelow(dir string) bool {
	return slices.ContainsFunc(d.tailer.Files(), func(t tail.Tracked) bool { return t.Gone == 0 && t.File.Root == dir })
}

// reasonOf is the system's error without the path.
func reasonOf(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// allExcluded reports whether all of some files are excluded.
func (d *Daemon) allExcluded(ids []tail.FileID) bool {
	excluded := d.excludedFiles()
	return !slices.ContainsFunc(ids, func(id tail.FileID) bool { _, ok := excluded[id]; return !ok })
}

// errPaused is returned when the user pauses while somebody waits.
var errPaused = errors.New("paused by the user")

// delivered returns when what was read has left the outbox, and so have its attachments. A new server announces only
// in its first answers that it takes them.
func (d *Daemon) delivered(ctx context.Context) error {
	const rounds = 3 // sessions may go on writing
	for range rounds {
		if err := d.attachments.Queue(ctx); err != nil {
			return err
		}
		if err := d.drained(ctx, d.db.Outbox.LastSeq()); err != nil {
			return err
		}
		if !d.attachments.Pending() {
			return nil
		}
	}
	return nil
}

// drained returns when every row up to seq has left the outbox, or when the user pauses. It does not wait for rows of
// retired servers.
func (d *Daemon) drained(ctx context.Context, seq uint64) error {
	for d.db.Outbox.FirstSeq(d.servers.Retired) <= seq {
		if d.pause.Current() != nil {
			return errPaused
		}
		if err := pause(ctx, syncPoll); err != nil {
			return err
		}
	}
	return nil
}

func pause(ctx context.Context, t time.Duration) error {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// syncResult counts where the lines are.
func (d *Daemon) syncResult(ctx context.Context, err error) control.SyncResult {
	stats, usage := d.tailer.Stats(), d.db.Outbox.Usage()
	r := control.SyncResult{
		SchemaVersion: control.SchemaVersion, Done: err == nil, Lines: stats.Lines,
		Dead: usage.Dead, Withheld: usage.Withheld, Waiting: usage.Entries,
	}
	r.Retired = d.servers.RetiredServers(usage)
	for _, f := range r.Retired {
		r.Waiting -= f.Entries
	}
	r.Excluded = d.excludedLines(ctx)
	r.Acknowledged = max(0, r.Lines-r.Waiting-d.deadLines(ctx, r.Dead)-r.Withheld-r.Excluded)
	if unlisted := d.unlisted(); err == nil && len(unlisted) > 0 {
		// Its content is unknown, so nobody may call it delivered.
		r.Done, r.Reason, r.Detail = false, reasonUnreadable, "cannot list "+unlisted[0]
		return r
	}
	if err == nil {
		return r
	}
	r.Reason, r.Detail, r.Hint = d.servers.Obstacle()
	switch {
	case errors.Is(err, errPaused):
		r.Reason, r.Detail, r.Hint = reasonPaused, errPaused.Error(), ""
	case r.Reason != "":
	case !d.router.AnyServer():
		r.Reason, r.Detail = reasonNoServer, "no server is set"
	case usage.Full != "":
		r.Reason, r.Detail = reasonFull, "reading has stopped: "+map[string]string{"cap": "the outbox is full",
			"disk": "the disk has less free than head_room"}[usage.Full]
	case errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
		r.Reason, r.Detail = reasonTimeout, "the time limit has passed"
	default:
		r.Reason, r.Detail = reasonTimeout, err.Error()
	}
	return r
}

// deadLines counts the dead letters that are lines on disk, of so many.
func (d *Daemon) deadLines(ctx context.Context, all int64) int64 {
	if all == 0 {
		return 0
	}
	letters, err := d.db.DeadLetters.List(context.WithoutCancel(ctx))
	if err != nil {
		d.log.Warn("cannot list the dead letters", "err", err)
	}
	for i := range letters {
		if letters[i].Batch.Items > 0 || letters[i].Reason == state.ReasonReplaced {
			all--
		}
	}
	return all
}

// excludedLines counts the lines that are left out because of their type, or in a history because of their project.
func (d *Daemon) excludedLines(ctx context.Context) (n int64) {
	if len(d.router.Rules().ExcludeTypes) == 0 && !d.router.History.Any() {
		return 0
	}
	facts, err := d.db.Files.Routings(context.WithoutCancel(ctx))
	if err != nil {
		d.log.Warn("cannot count the lines left out", "err", err)
		return 0
	}
	for _, f := range facts {
		n += f.Excluded
	}
	return n
}
