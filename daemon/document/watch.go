package document

import (
	"context"
	"errors"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/derive"
	"github.com/ccship/ccship/state/projection"
)

// Run checks documents until ctx is done.
func (t *Tracker) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.bell:
		case <-timer.C:
		}
		for session := t.nextSession(); session != "" && ctx.Err() == nil; session = t.nextSession() {
			t.visit(ctx, session)
		}
		if wait, due := t.untilDue(time.Now()); due {
			timer.Reset(wait)
		}
	}
}

// nextSession returns a session that is due now, or "". It marks Run as busy if there is one, otherwise as not busy.
func (t *Tracker) nextSession() string {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for session, s := range t.sessions {
		if s.needsChecks() && !s.due.After(now) || s.urgent() {
			s.due = now.Add(t.activeInterval) // until visit knows better
			t.busy = true
			return session
		}
	}
	t.busy = false
	return ""
}

// untilDue returns the time until something is due; false: nothing is due until the bell rings.
func (t *Tracker) untilDue(now time.Time) (wait time.Duration, due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.sessions {
		if !s.needsChecks() {
			continue
		}
		if w := max(0, s.due.Sub(now)); !due || w < wait {
			wait, due = w, true
		}
	}
	return wait, due
}

// caughtUp reports whether every request and edit by Claude is in the outbox.
func (t *Tracker) caughtUp() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.sessions {
		if s.urgent() {
			return false
		}
	}
	return !t.busy
}

// Wait returns when every request and edit by Claude is in the outbox. The error is ctx's.
func (t *Tracker) Wait(ctx context.Context) error { return derive.Until(ctx, nil, t.caughtUp) }

// visit carries out the requests of a session's Claude, and checks the session's documents.
func (t *Tracker) visit(ctx context.Context, session string) {
	t.mu.Lock()
	s := t.sessions[session]
	if s == nil {
		t.mu.Unlock()
		return
	}
	requested, edits := s.requested || s.retry, s.edits
	s.requested, s.retry, s.edits = false, false, nil
	t.mu.Unlock()
	if requested {
		t.answerClaude(ctx, session)
	}
	t.work.Lock()
	began := time.Now()
	loc, err := t.Locator.Locate(ctx, session)
	unchanged, soon := false, false
	if err == nil {
		if unchanged = len(edits) == 0 && t.unchanged(loc); !unchanged {
			soon = t.checkAll(ctx, loc, edits)
		}
	} else {
		t.setProblem(session, err.Error())
	}
	took := time.Since(began)
	t.work.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if unchanged {
		s.addCost(took)
	}
	if loc.Written.After(s.active) {
		s.active = loc.Written
	}
	s.due = t.pauseEnd(t.pause(s, soon))
}

// setProblem notes why none of a session's documents can be read.
func (t *Tracker) setProblem(session, why string) {
	for _, d := range t.list(session, true) {
		d.problem = why
		t.put(d, false)
	}
}

// checkAll checks a session's documents, and reports whether they should be checked again soon. The caller holds work.
func (t *Tracker) checkAll(ctx context.Context, loc Location, edits []edit) (soon bool) {
	documents := t.list(loc.Session, true)
	if err := t.sendUnlinks(ctx, loc); err != nil {
		t.warn("cannot queue that documents were unlinked; retrying", "session", loc.Session, "err", err)
	}
	if len(documents) == 0 {
		return false
	}
	folder, err := t.open(&loc)
	if err != nil { // a missing folder does not mean deleted files: it may be on another disk
		t.setProblem(loc.Session, err.Error())
		return false
	}
	defer folder.Close()
	lines := editLines(folder, edits)
	for i := range documents {
		d := documents[i]
		c := check{t: t, loc: t.locationOf(loc, loc.path(&d)), folder: folder, document: d, line: -1}
		if line, edited := lines[d.Path]; edited {
			c.edited, c.line = true, line
		}
		again, err := c.run(ctx)
		if err != nil && ctx.Err() == nil {
			t.warn("cannot store a document; retrying", "session", loc.Session, "path", d.Path, "err", err)
		}
		soon = soon || again || err != nil
	}
	return soon
}

// editLines returns the line of the last edit of each file, under every name that the file may have.
func editLines(folder *folder, edits []edit) map[string]int64 {
	lines := map[string]int64{}
	for _, e := range edits {
		for _, name := range folder.Names("", e.path) {
			lines[name] = e.line
		}
		if name, err := folder.Find("", e.path); err == nil {
			lines[name] = e.line
		}
	}
	return lines
}

// sendUnlinks queues ends of links that could not be queued before.
func (t *Tracker) sendUnlinks(ctx context.Context, loc Location) error {
	for _, d := range t.list(loc.Session, false) {
		if d.Linked || d.Dest != "" || !t.canSend(loc) {
			continue
		}
		loc := t.locationOf(loc, loc.path(&d))
		if !t.canSend(loc) {
			continue
		}
		if err := t.publish(ctx, loc, &change{document: d, kind: kindUnlinked, by: d.By, line: -1}); err != nil {
			return err
		}
	}
	return nil
}

// refusalNotice tells a session's Claude why a file was not linked. Claude's tool has answered before the daemon knew.
func refusalNotice(a *projection.LinkRequest, refusal *control.Error) []projection.Notice {
	if !a.Link {
		return nil
	}
	reason := refusal.Message
	if refusal.Hint != "" {
		reason += "; " + refusal.Hint
	}
	return []projection.Notice{{Session: a.Session, Kind: projection.NoticeRefused, Path: a.Path, Reason: reason}}
}

// answerClaude carries out the requests of a session's Claude, in order.
func (t *Tracker) answerClaude(ctx context.Context, session string) {
	asks, err := t.Projections.Documents.LinkRequests(ctx, session)
	for i := 0; i < len(asks) && err == nil; i++ {
		a := asks[i]
		a.Done = true
		r := linkRequest{session: session, base: a.Base, path: a.Path, by: byMCP, line: a.Line,
			asks: []projection.LinkRequest{a}}
		if a.Link {
			err = t.link(ctx, r)
		} else {
			err = t.unlink(ctx, r)
		}
		if refusal, ok := errors.AsType[*control.Error](controlError(err)); ok {
			t.Log.Info("a request of Claude's is refused", "session", session, "link", a.Link, "path", a.Path, "err",
				refusal.Message)
			_, err = t.Projections.Commit(ctx, []projection.Derivation{{
				LinkRequests: r.asks, Notices: refusalNotice(&a, refusal),
			}})
		}
	}
	if err == nil {
		return
	}
	t.work.Lock()
	t.warn("cannot do what Claude asked for; retrying", "session", session, "err", err)
	t.work.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.sessions[session]; s != nil {
		s.retry = true
	}
}
