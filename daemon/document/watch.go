package document

import (
	"context"
	"errors"
	"io/fs"
	"os"
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

// Documents are checked by the clock: that finds the changes of any program on every file system, including editors
// that replace the file, and needs no file system watch. If nothing is linked, nothing is checked.
const (
	shortInterval  = 2 * time.Second
	middleInterval = 30 * time.Second
	longInterval   = 10 * time.Minute

	shortFor  = 10 * time.Minute // after something happened in the session
	middleFor = 12 * time.Hour
)

const (
	// maxShare limits checks without a result to one part in so many of the time: with more documents, checks are rarer.
	maxShare = 2000
	// firstCost is the assumed time of a session's check before one was measured.
	firstCost = 100 * time.Microsecond
)

// addCost records the duration of a check that found nothing. A check that waited for a busy machine proves little, so
// the cost rises slowly.
func (s *sessionDocuments) addCost(d time.Duration) {
	if s.cost == 0 {
		s.cost = firstCost
	}
	s.cost = min(d, s.cost+s.cost/8)
}

// interval returns how often a session's documents are checked, and the largest interval when there are many.
func (s *sessionDocuments) interval(now time.Time) (usual, most time.Duration) {
	switch age := now.Sub(s.active); {
	case age < shortFor:
		return shortInterval, middleInterval
	case age < middleFor:
		return middleInterval, longInterval
	}
	return longInterval, longInterval
}

// pause returns the time until the next check of a session's documents. soon: a change is expected. The caller holds
// mu.
func (t *Tracker) pause(of *sessionDocuments, soon bool) time.Duration {
	now := time.Now()
	every, most := of.interval(now)
	if soon {
		every, most = shortInterval, shortInterval
	}
	var cost time.Duration // of one check of all sessions with that interval
	for _, s := range t.sessions {
		if usual, _ := s.interval(now); usual == every && s.needsChecks() {
			cost += s.cost
		}
	}
	every = min(max(every, maxShare*cost), most)
	if _, slowest := of.interval(now); slowest == middleInterval && !soon {
		t.activeInterval = every
	}
	return every
}

// pauseEnd returns the end of a pause that begins now. Longer pauses end together, because waking up costs more than a
// check.
func (t *Tracker) pauseEnd(pause time.Duration) time.Time {
	now := time.Now()
	if pause <= shortInterval {
		return now.Add(pause)
	}
	age := now.Sub(t.started) + pause
	return t.started.Add((age + shortInterval - 1).Truncate(shortInterval))
}

// unchanged reports whether a session's documents are certainly as at the last check. It makes one system call per
// document. The caller holds work.
func (t *Tracker) unchanged(loc Location) bool {
	for _, d := range t.list(loc.Session, false) {
		if !d.Linked {
			if d.Dest == "" && t.canSend(t.locationOf(loc, loc.path(&d))) {
				return false
			}
			continue
		}
		if !t.documentUnchanged(loc, &d) {
			return false
		}
	}
	return true
}

func (t *Tracker) documentUnchanged(loc Location, d *trackedDocument) bool {
	path := loc.path(d)
	loc = t.locationOf(loc, path)
	if d.problem != loc.problem() || d.unproven || d.missing || !d.changingSince.IsZero() ||
		d.TooLarge && d.Size <= t.Settings.Config().DocumentCap || d.Dest != loc.Dest && t.canSend(loc) {
		return false
	}
	info, err := os.Stat(path)
	if d.Deleted {
		return errors.Is(err, fs.ErrNotExist)
	}
	return err == nil && info.Mode().IsRegular() && stampOf(info) == d.Stat
}
