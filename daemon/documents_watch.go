package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/document/file"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
)

// Linked documents are looked at by the clock: that finds the changes of anybody, also editors that put a new file in
// the old one's place, on every file system, and takes no watch. Where nothing is linked, nothing is looked at.
const (
	hotLook  = 2 * time.Second
	warmLook = 30 * time.Second
	coldLook = 10 * time.Minute

	hotFor  = 10 * time.Minute // after something happened in the session
	warmFor = 12 * time.Hour
	// unrest is how long a file that is being written is waited for; then it is read as it is.
	unrest = 30 * time.Second
)

// run looks at documents until ctx is done.
func (x *documents) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-x.bell:
		case <-timer.C:
		}
		for session := x.next(); session != "" && ctx.Err() == nil; session = x.next() {
			x.visit(ctx, session)
		}
		if wait, any := x.rest(time.Now()); any {
			timer.Reset(wait)
		}
	}
}

// next is a session that is to be looked at now; "" when there is none. From then on run counts as busy.
func (x *documents) next() string {
	now := time.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
	for session, s := range x.shelves {
		if s.wanted() && !s.due.After(now) || s.urgent() {
			s.due = now.Add(x.hot) // until visit says better
			x.busy = true
			return session
		}
	}
	x.busy = false
	return ""
}

// urgent says whether something was asked for or changed that is known of.
func (s *shelf) urgent() bool { return s.asked || len(s.edits) > 0 }

// wanted says whether there is something to look at, or to be told.
func (s *shelf) wanted() bool {
	for _, p := range s.papers {
		if p.Linked || p.Dest == "" {
			return true
		}
	}
	return s.again
}

// rest says how long there is nothing to do; false: until the bell.
func (x *documents) rest(now time.Time) (wait time.Duration, any bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.shelves {
		if !s.wanted() {
			continue
		}
		if w := max(0, s.due.Sub(now)); !any || w < wait {
			wait, any = w, true
		}
	}
	return wait, any
}

// settled says whether all that Claude asked for or changed is in the outbox.
func (x *documents) settled() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.shelves {
		if s.urgent() {
			return false
		}
	}
	return !x.busy
}

// wait returns when settled.
func (x *documents) wait(ctx context.Context) error {
	for !x.settled() {
		if err := pause(ctx, syncPoll); err != nil {
			return err
		}
	}
	return nil
}

// visit does what is asked for in a session, and looks at its documents.
func (x *documents) visit(ctx context.Context, session string) {
	x.mu.Lock()
	shelf := x.shelves[session]
	if shelf == nil {
		x.mu.Unlock()
		return
	}
	asked, edits, active := shelf.asked || shelf.again, shelf.edits, shelf.active
	shelf.asked, shelf.again, shelf.edits = false, false, nil
	x.mu.Unlock()
	if asked {
		x.answer(ctx, session)
	}
	x.work.Lock()
	began := time.Now()
	s, err := x.locate(ctx, session)
	quiet, soon := false, false
	if err == nil {
		if quiet = len(edits) == 0 && x.quiet(s); !quiet {
			soon = x.lookAll(ctx, s, edits)
		}
	} else {
		x.troubled(session, err.Error())
	}
	took := time.Since(began)
	x.work.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	if quiet {
		shelf.took(took)
	}
	if shelf.active = active; s.written.After(active) {
		shelf.active = s.written
	}
	shelf.due = x.after(x.pace(shelf, soon))
}

// troubled notes why none of a session's documents can be read.
func (x *documents) troubled(session, why string) {
	for _, p := range x.papers(session, true) {
		p.problem = why
		x.put(p, false)
	}
}

// lookAll looks at a session's documents, and says whether it should soon again. The caller holds work.
func (x *documents) lookAll(ctx context.Context, s site, edits []edit) (soon bool) {
	papers := x.papers(s.session, true)
	if err := x.owedUnlinks(ctx, s); err != nil {
		x.complain("that documents were unlinked is told later", "session", s.session, "err", err)
	}
	if len(papers) == 0 {
		return false
	}
	folder, err := x.open(s.cwd)
	if err != nil { // a folder that is away is no deletion: it may be on another disk
		x.troubled(s.session, err.Error())
		return false
	}
	defer folder.Close()
	lines := map[string]int64{} // of the last edit, by name
	for _, e := range edits {
		for _, name := range folder.Names("", e.path) {
			lines[name] = e.line
		}
		if name, err := folder.Find("", e.path); err == nil {
			lines[name] = e.line
		}
	}
	for i := range papers {
		l := look{x: x, site: x.within(s, s.path(&papers[i])), folder: folder, paper: papers[i], line: -1}
		if line, edited := lines[papers[i].Path]; edited {
			l.edited, l.line = true, line
		}
		again, err := l.look(ctx)
		if err != nil && ctx.Err() == nil {
			x.complain("a document cannot be kept, trying again", "session", s.session, "path", papers[i].Path, "err", err)
		}
		soon = soon || again || err != nil
	}
	return soon
}

// owedUnlinks tells of documents that were unlinked when nothing could be queued.
func (x *documents) owedUnlinks(ctx context.Context, s site) error {
	for _, p := range x.papers(s.session, false) {
		if p.Linked || p.Dest != "" || !x.sends(s) {
			continue
		}
		s := x.within(s, s.path(&p))
		if !x.sends(s) {
			continue
		}
		if err := x.publish(ctx, s, &news{paper: p, change: unlinkedChange, by: p.By, line: -1}); err != nil {
			return err
		}
	}
	return nil
}

// sends says whether something can be queued for a session's server.
func (x *documents) sends(s site) bool {
	return s.dest != "" && s.withheld == "" && x.db.Room(true)
}

// look is a look at one document.
type look struct {
	x      *documents
	site   site
	folder *file.Folder
	paper  paper
	edited bool  // by one of Claude's tools, whose work is done
	line   int64 // of that tool's result; -1: none
}

// look finds out whether there is another version, and publishes it. again: it should be looked at soon.
func (l *look) look(ctx context.Context) (again bool, err error) {
	p := &l.paper
	if p.elsewhere(l.folder.Identity()) {
		p.problem = elsewhereProblem
		l.x.put(*p, false)
		return false, nil
	}
	stamp, err := l.folder.Stamp(p.Path)
	switch {
	case errors.Is(err, file.ErrGone):
		return l.gone(ctx)
	case err != nil:
		p.problem, p.missed = err.Error(), false
		l.x.put(*p, false)
		return false, nil
	}
	p.missed, p.problem = false, l.site.problem()
	if !l.ripe(stamp) {
		l.x.put(*p, false)
		return p.doubtful || !p.since.IsZero(), nil
	}
	c, err := l.folder.Read(p.Path, l.x.conf().DocumentCap, outbox.BlobInRow)
	if errors.Is(err, file.ErrGone) {
		return true, nil
	}
	if err != nil {
		p.problem = err.Error()
		l.x.put(*p, false)
		return false, nil
	}
	if c.Torn && time.Since(p.since) < unrest {
		l.wait(c.Stamp)
		return true, nil
	}
	return l.take(ctx, &c)
}

// wait notes that the file is being written.
func (l *look) wait(stamp file.Stamp) {
	p := &l.paper
	if p.seen = stamp; p.since.IsZero() {
		p.since = time.Now()
	}
	l.x.put(*p, false)
}

// ripe says whether the file is to be read now: it seems to be another, and nobody writes it; or the server has not
// got it yet.
func (l *look) ripe(stamp file.Stamp) bool {
	p := &l.paper
	if stamp == file.Stamp(p.Stat) && !p.Deleted {
		p.seen, p.since = file.Stamp{}, time.Time{}
		readable := p.TooLarge && p.Size <= l.x.conf().DocumentCap
		return readable || l.edited || l.unsent() || p.doubtful && stamp.Settled(time.Now())
	}
	if l.edited || stamp == p.seen || !p.since.IsZero() && time.Since(p.since) >= unrest {
		return true
	}
	l.wait(stamp)
	return false
}

// unsent says whether the server of the session has not got what is known.
func (l *look) unsent() bool {
	return l.paper.Dest != l.site.dest && l.x.sends(l.site)
}

// take compares what was read with what is known, and publishes what is new.
func (l *look) take(ctx context.Context, c *file.Content) (again bool, err error) {
	p := l.paper
	l.site = l.x.within(l.site, c.Path)
	same := !p.Deleted && c.Size == p.Size && c.SHA256 == p.SHA256 && c.TooLarge == p.TooLarge
	if c.TooLarge { // it was not read: the directory entry must do
		same = same && c.Stamp == file.Stamp(p.Stat)
	}
	n := news{change: modifiedChange, by: byOther, line: l.line, content: c, root: l.folder.Root()}
	if l.edited {
		n.by = byClaude
	}
	switch unsent := l.unsent(); {
	case same && !unsent:
		p.at(c)
		p.problem = l.site.problem()
		l.x.put(p, false)
		return p.doubtful, nil
	case same:
		n.change, n.by = linkedChange, p.AddedBy
		p.at(c)
	default:
		p.read(c, n.by)
		if unsent {
			n.change, n.by = linkedChange, p.AddedBy // the server may not know of it at all
		}
	}
	p.problem = l.site.problem()
	n.paper = p
	return p.doubtful, l.x.publish(ctx, l.site, &n)
}

// gone is a look at a file that is not there. An editor that puts a new one in its place gets time to do so.
func (l *look) gone(ctx context.Context) (again bool, err error) {
	p := l.paper
	p.problem = l.site.problem()
	if p.Deleted && !l.unsent() || !p.Deleted && !p.missed {
		p.missed = !p.Deleted
		l.x.put(p, false)
		return p.missed, nil
	}
	n := news{change: deletedChange, by: byOther, line: -1}
	if !p.Deleted {
		p.Version++
		p.ChangedAt, p.By = time.Now().UnixMilli(), n.by
	}
	p.Deleted, p.missed, p.Size, p.SHA256, p.TooLarge = true, false, 0, "", false
	p.Stat, p.seen, p.since = state.Stamp{}, file.Stamp{}, time.Time{}
	n.paper = p
	return false, l.x.publish(ctx, l.site, &n)
}

// answer does what a session's Claude asked for, in its order.
func (x *documents) answer(ctx context.Context, session string) {
	asks, err := x.db.DocumentAsks(ctx, session)
	for i := 0; i < len(asks) && err == nil; i++ {
		a := asks[i]
		a.Done = true
		l := linkage{session: session, base: a.Base, path: a.Path, by: byMCP, line: a.Line, asks: []state.DocumentAsk{a}}
		do := x.unlink
		if a.Link {
			do = x.link
		}
		err = do(ctx, l)
		if no, ok := errors.AsType[*control.Error](refused(err)); ok {
			x.log.Info("what Claude asked for is refused", "session", session, "link", a.Link, "path", a.Path, "err", no.Message)
			_, err = x.db.Derive(ctx, []state.Derivation{{Asks: l.asks}})
		}
	}
	if err == nil {
		return
	}
	x.work.Lock()
	x.complain("what Claude asked for is tried again", "session", session, "err", err)
	x.work.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.shelves[session]; s != nil {
		s.again = true
	}
}

// complain warns of what cannot be stored, once until something can. The caller holds work.
func (x *documents) complain(what string, args ...any) {
	if !x.complained {
		x.log.Warn(what, args...)
	}
	x.complained = true
}
