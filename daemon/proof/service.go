package proof

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/ccship/ccship/daemon/control"
)

// Service answers the requests to compare, and to send differences again. Every field is required. Safe for concurrent
// use.
type Service struct {
	Deps     func() Deps // for one run, whose rules do not change
	Syncer   *Syncer
	Session  func(name string) (string, error) // the full name of a session; an error for an unknown one
	Repairer *Reconciler
}

// Verify syncs, and compares the transcripts on disk with what the servers hold. With req.Repair it sends the
// differences again, and compares once more.
func (s *Service) Verify(ctx context.Context, req control.VerifyRequest,
	progress func(control.VerifyProgress)) (control.VerifyReport, error) {
	report, repairs, err := s.compare(ctx, req, progress)
	if err != nil || !req.Repair || len(repairs.lines)+len(repairs.attachments) == 0 {
		return report, err
	}
	repaired, err := s.repair(ctx, req, repairs, progress)
	if err != nil {
		return control.VerifyReport{}, err
	}
	resumed := report.Resumed
	report, _, err = s.compare(ctx, req, progress)
	report.Repaired, report.Resumed = &repaired, report.Resumed || resumed
	return report, err
}

// compare syncs and compares.
func (s *Service) compare(ctx context.Context, req control.VerifyRequest,
	progress func(control.VerifyProgress)) (r control.VerifyReport, repairs wrong, err error) {
	deps := s.Deps()
	before := deps.Files.Files()
	synced, err := s.Syncer.Sync(ctx, control.SyncRequest{Wait: true, Timeout: req.Timeout})
	if err != nil {
		return r, repairs, err
	}
	unfinished := []string{ReasonTimeout, reasonRefused, ReasonUnreadable, reasonFull, ReasonPaused}
	if !synced.Done && !slices.Contains(unfinished, synced.Reason) {
		return r, repairs, SyncError(synced)
	}
	session, err := s.chosen(req.Session)
	if err != nil {
		return r, repairs, err
	}
	options := Options{Session: session, Deep: req.Deep, Progress: progress, Waiting: synced.Waiting}
	if !synced.Done { // folders that cannot be listed cannot be compared either
		options.Incomplete, options.Reason, options.Hint = synced.Detail, synced.Reason, synced.Hint
	} else if options.Delivered, err = s.delivered(ctx, deps, before); err != nil {
		options.Incomplete, options.Reason = "what came meanwhile waits: "+err.Error(), ReasonTimeout
	}
	if r, repairs, err = run(ctx, s.Deps(), options); err != nil {
		return r, repairs, err
	}
	r.Resumed, r.Retired = synced.Resumed, synced.Retired
	return r, repairs, nil
}

// chosen returns the full name of the session that name begins. An excluded session, and one that only the name of a
// file tells, stays as it is.
func (s *Service) chosen(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	whole, err := s.Session(name)
	if known, ok := errors.AsType[*control.Error](err); ok && known.Code == control.CodeNoSession {
		return name, nil
	}
	return whole, err
}

// Reasons of a control.SyncResult. Servers.Obstacle has more.
const (
	ReasonTimeout    = "timeout"
	reasonRefused    = "refused"
	ReasonUnreadable = "unreadable"
	reasonFull       = "full"
	ReasonPaused     = "paused"
	reasonNoServer   = "no_server"
)

// SyncError is the error of a sync without any reachable server.
func SyncError(r control.SyncResult) error {
	hint := "`ccship status` shows what is wrong"
	if r.Reason == reasonNoServer {
		hint = "set server_url in the configuration, or try `ccship up`"
	}
	return control.NewError(r.Reason, r.Detail, hint)
}

// repair sends again what a comparison found wrong, and waits for its delivery while there is progress.
func (s *Service) repair(ctx context.Context, req control.VerifyRequest, repairs wrong,
	progress func(control.VerifyProgress)) (all control.ResendResult, err error) {
	deps := s.Deps()
	all = newResult()
	for _, dest := range slices.Sorted(maps.Keys(repairs.lines)) {
		if !deps.Servers.SpeaksExtension(dest) {
			continue
		}
		some, err := s.Repairer.Repair(ctx, dest, repairs.lines[dest], false)
		merge(&all, some)
		if err != nil {
			return all, err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(repairs.attachments)) {
		if err := deps.Attachments.Requeue(ctx, repairs.attachments[id], id); err != nil {
			return all, err
		}
		if err := deps.Attachments.Deliver(ctx, id); err != nil {
			return all, err
		}
	}
	return all, s.deliver(ctx, req, &all, progress)
}

// deliver syncs until everything is delivered, or until a sync fails during which nothing was acknowledged.
func (s *Service) deliver(ctx context.Context, req control.VerifyRequest, sent *control.ResendResult,
	progress func(control.VerifyProgress)) error {
	deps, stop, stopped := s.Deps(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				done := max(0, sent.Bytes-deps.State.Outbox.Usage().Raw)
				progress(control.VerifyProgress{Sending: true, Bytes: done, BytesTotal: sent.Bytes})
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	for waiting := int64(-1); ; {
		r, err := s.Syncer.Sync(ctx, control.SyncRequest{Wait: true, Timeout: req.Timeout})
		if err != nil || r.Done || r.Reason != ReasonTimeout || waiting >= 0 && r.Waiting >= waiting {
			return err
		}
		waiting = r.Waiting
	}
}

// progressEvery is the time between two progress reports of a repair.
const progressEvery = 200 * time.Millisecond
