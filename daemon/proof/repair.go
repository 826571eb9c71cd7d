package proof

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// Repair makes transcripts of a server continue after the lines that it holds as they are on disk; with fromStart,
// before their first line. What follows is read again and sent in a new generation. A transcript that is in step, or no
// longer on disk, does not change. The result is what was done until the error, if there is one.
func (r *Reconciler) Repair(ctx context.Context, dest string, ids []tail.FileID,
	fromStart bool) (control.ResendResult, error) {
	c, err := r.newComparison(ctx, dest)
	if err != nil {
		return control.ResendResult{}, err
	}
	c.repair, c.fromStart, c.sending = true, fromStart, true
	for _, id := range ids {
		t, ok := r.Files.File(id)
		if !ok || t.Gone != 0 {
			continue
		}
		if err = c.limitCommon(ctx, id); err != nil {
			break
		}
		if err = c.some(ctx, []tail.Tracked{t}); err != nil {
			break
		}
	}
	if err == nil {
		err = c.retryReplaced(ctx, ids...)
	}
	c.result.Transcripts = c.compared
	return c.result, err
}

// fromFirst returns the agreement for sending everything again, whatever the server has.
func (c *comparison) fromFirst(has *protocol.Digest) *agreement {
	at := &agreement{prefix: &tail.Prefix{}}
	if has == nil {
		return at
	}
	if g, ok := has.Newest(); ok {
		at.front(has.Epoch, g, c.Origin.Epoch)
	}
	return at
}

// note adds a transcript that has rejoined to the result of a repair.
func (c *comparison) note(t *tail.Tracked, f *state.Routing, to tail.Cursor) {
	lines, bytes := max(0, t.Cursor.Line-to.Line), max(0, t.Cursor.Offset-to.Offset)
	c.result.Lines += lines
	c.result.Bytes += bytes
	c.result.Resent = append(c.result.Resent, control.ResentTranscript{
		SessionID: f.Stream.SessionID, Path: t.File.Path, From: to.Line, Lines: lines, Generation: to.Generation,
	})
}

// Resend makes the transcripts of a session and its agents, or all transcripts, continue after the lines that their
// servers hold as they are on disk.
func (s *Service) Resend(ctx context.Context, req control.ResendRequest) (control.ResendResult, error) {
	all := newResult()
	if req.All == (req.Session != "") {
		return all, control.Usage("name a session, or all of them with --all", "`ccship list` lists them")
	}
	session := ""
	if !req.All {
		var err error
		if session, err = s.session(req.Session); err != nil {
			return all, err
		}
	}
	deps := s.Deps()
	facts, err := deps.State.Files.Routings(ctx)
	if err != nil {
		return all, err
	}
	chosen := resendable{deps: deps, facts: facts, excluded: deps.Rules.Excluded(facts), fromStart: req.FromStart}
	byDest := chosen.choose(session, &all)
	if session != "" && len(byDest) == 0 {
		return all, nothingToSend(session, &all)
	}
	for _, dest := range slices.Sorted(maps.Keys(byDest)) {
		some, err := s.Repairer.Repair(ctx, dest, byDest[dest], req.FromStart)
		merge(&all, some)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// session returns the full name of a session. An unknown session is a usage error.
func (s *Service) session(name string) (string, error) {
	whole, err := s.Session(name)
	if known, ok := errors.AsType[*control.Error](err); ok && known.Code == control.CodeNoSession {
		return "", control.Usage(known.Message, known.Hint)
	}
	return whole, err
}

func nothingToSend(session string, r *control.ResendResult) error {
	if len(r.Skipped) > 0 {
		return control.Usage("session "+session+" is not sent again: "+r.Skipped[0].Why,
			"`ccship exclude` says what is left out")
	}
	return control.Usage("no transcript of session "+session+" is on disk",
		"`ccship restore` brings it back from the server")
}

// resendable selects the transcripts that can be sent again.
type resendable struct {
	deps      Deps
	facts     map[tail.FileID]state.Routing
	excluded  map[tail.FileID]string
	fromStart bool
}

// choose returns the transcripts on disk of a session, or all of them for "", by destination. It lists in r those that
// cannot be sent again.
func (c *resendable) choose(session string, r *control.ResendResult) map[string][]tail.FileID {
	byDest := map[string][]tail.FileID{}
	for _, t := range c.deps.Files.Files() {
		f := c.facts[t.File.ID]
		name := f.Stream.SessionID
		if t.Gone != 0 || session != "" && !slices.Contains(transcript.ForgetNames(name), session) {
			continue
		}
		if why := c.why(t.File.ID, &f); why != "" {
			r.Skipped = append(r.Skipped, control.SkippedFile{SessionID: name, Path: t.File.Path, Why: why})
			continue
		}
		byDest[f.Dest] = append(byDest[f.Dest], t.File.ID)
	}
	return byDest
}

// why returns why a transcript cannot be sent again; "" when it can.
func (c *resendable) why(id tail.FileID, f *state.Routing) string {
	switch why, excluded := c.excluded[id]; {
	case excluded:
		return why
	case !f.Decided:
		return detailUndelivered
	case !c.fromStart && !c.deps.Servers.SpeaksExtension(f.Dest):
		return "a plain server cannot be asked what it has; --from-start sends everything again"
	}
	return ""
}

func newResult() control.ResendResult {
	return control.ResendResult{SchemaVersion: control.SchemaVersion, Resent: []control.ResentTranscript{}}
}

// merge adds what was done for one server.
func merge(all *control.ResendResult, some control.ResendResult) {
	all.Transcripts += some.Transcripts
	all.Lines += some.Lines
	all.Bytes += some.Bytes
	all.Resent = append(all.Resent, some.Resent...)
	all.Skipped = append(all.Skipped, some.Skipped...)
}

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
