package proof

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/delivery"
	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// defaultLimit is how long a sync waits by default.
const defaultLimit = time.Minute

const (
	poll     = 2 * time.Millisecond   // between two checks of the outbox during a sync
	readPoll = 100 * time.Millisecond // between two attempts to read files that wait
)

// syncTarget is a part that processes what was read.
type syncTarget interface {
	// Wait returns when everything read so far is processed and queued.
	Wait(ctx context.Context) error
}

// syncAttachments are the files that belong to transcripts.
type syncAttachments interface {
	// Queue puts the undelivered ones into the outbox.
	Queue(ctx context.Context) error
	// Pending reports whether some are not in the outbox yet.
	Pending() bool
}

// Syncer waits for delivery. All fields are required. Its methods may be called at any time.
type Syncer struct {
	State       *state.DB
	Files       *tail.Tailer
	Router      *route.Router
	Servers     *delivery.Servers
	Pause       *delivery.Pause
	Reconciler  *Reconciler
	Derived     syncTarget
	Documents   syncTarget
	Attachments syncAttachments
	Log         *slog.Logger
}

// Sync reads every file at once, verifies what was read earlier of files that changed, and ends back-off and pauses,
// including the user's. With Wait it returns when every whole line that was on disk at the call is acknowledged, or
// known not to be sent.
func (s *Syncer) Sync(ctx context.Context, req control.SyncRequest) (control.SyncResult, error) {
	limit := defaultLimit
	if req.Timeout != "" {
		t, err := time.ParseDuration(req.Timeout)
		if err != nil {
			return control.SyncResult{}, control.Usage(fmt.Sprintf("%q is not a duration", req.Timeout), "for example 20s or 2m")
		}
		limit = t
	}
	resumed, err := s.Pause.End(ctx)
	if err != nil {
		return control.SyncResult{}, err
	}
	s.Servers.Retry(false)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		changes := s.Reconciler.Changes()
		err = s.ReadAll(ctx)
		if _, unread := errors.AsType[unreadError](err); req.Wait && (err == nil || unread) {
			if e := s.waitDelivered(ctx); e != nil {
				err = e
			}
		}
		if err != nil || changes == s.Reconciler.Changes() {
			break
		}
	}
	result := s.result(ctx, err)
	result.Resumed = resumed
	return result, nil
}

// waitDelivered returns when everything that was read, and everything derived from it, is acknowledged.
func (s *Syncer) waitDelivered(ctx context.Context) error {
	if err := s.Derived.Wait(ctx); err != nil {
		return err
	}
	if err := s.Documents.Wait(ctx); err != nil {
		return err
	}
	if err := s.delivered(ctx); err != nil {
		return err
	}
	return s.checkServers(ctx)
}

// checkServers returns when no server is known to lack lines that it acknowledged. It trusts the acknowledgements of a
// server that does not answer.
func (s *Syncer) checkServers(ctx context.Context) error {
	for _, dest := range s.State.Outbox.Destinations() {
		if s.Servers.Retired(dest) {
			continue
		}
		if err := s.Reconciler.Check(ctx, dest); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			s.Log.Debug("cannot ask for the ledger", "server", dest, "err", err)
		}
	}
	return nil
}

// ReadAll returns when every whole line on disk is in the outbox, in a file that is not read, or in one that cannot be:
// waiting longer reads no more of that one.
func (s *Syncer) ReadAll(ctx context.Context) error {
	for {
		err := s.Files.Sync(ctx)
		waiting, ok := errors.AsType[*tail.WaitingError](err)
		if !ok {
			return err
		}
		if waiting.NoSpace == 0 && s.allExcluded(waiting.Files) {
			if waiting.Unread == 0 {
				return nil
			}
			if files := s.Files.Stats().Unreadable; len(files) > 0 {
				return unreadError(files[0])
			}
		}
		if !s.Router.AnyServer() {
			return err
		}
		if err := pause(ctx, readPoll); err != nil {
			return err
		}
	}
}

// unreadError is the transcript that cannot be read, and why, where nothing else is left to read.
type unreadError string

func (e unreadError) Error() string { return "cannot read " + string(e) }

// allExcluded reports whether all of some files are excluded.
func (s *Syncer) allExcluded(ids []tail.FileID) bool {
	excluded := s.Router.ExcludedOnDisk(s.Files)
	return !slices.ContainsFunc(ids, func(id tail.FileID) bool { _, ok := excluded[id]; return !ok })
}

// errPaused means that the user paused sending during the wait.
var errPaused = errors.New("paused by the user")

// delivered returns when everything that was read, and its attachments, have left the outbox. A new server announces
// only in its first answers that it accepts attachments, and its first answer has the dead letters queued again.
func (s *Syncer) delivered(ctx context.Context) error {
	const rounds = 3 // sessions may keep writing
	for range rounds {
		requeued := s.State.Outbox.Requeued()
		if err := s.Attachments.Queue(ctx); err != nil {
			return err
		}
		if err := s.Drained(ctx, s.State.Outbox.LastSeq()); err != nil {
			return err
		}
		if !s.Attachments.Pending() && requeued == s.State.Outbox.Requeued() {
			return nil
		}
	}
	return nil
}

// Drained returns when every row up to seq has left the outbox, or when the user pauses. It does not wait for rows of
// retired servers.
func (s *Syncer) Drained(ctx context.Context, seq uint64) error {
	defer s.Servers.Hasten()()
	for s.State.Outbox.FirstSeq(s.Servers.Retired) <= seq {
		if s.Pause.Current() != nil {
			return errPaused
		}
		if err := pause(ctx, poll); err != nil {
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
