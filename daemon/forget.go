package daemon

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// inFlight is longer than a request of usual size may be under way.
const inFlight = 65 * time.Second

// Forget removes a session everywhere but on disk. First it leaves a tombstone, so that nothing more is queued; then it
// drops what waits and asks the servers. Those that cannot be reached are asked later.
func (d *Daemon) Forget(ctx context.Context, req control.ForgetRequest) (control.ForgetResult, error) {
	a := control.ForgetResult{
		SchemaVersion: control.SchemaVersion, Session: req.Session, Pending: []string{}, Kept: []string{}, OnDisk: []string{},
	}
	if req.Session == "" {
		return a, control.Usage("name a session", "")
	}
	known := d.router.Forgotten(req.Session)
	files, dests, err := d.streamsOf(ctx, req.Session)
	if err != nil {
		return a, err
	}
	for _, t := range files {
		if a.Transcripts++; t.Gone == 0 {
			a.OnDisk = append(a.OnDisk, t.File.Path)
		}
	}
	slices.Sort(a.OnDisk)
	a.Kept, dests = d.plainOnes(dests)
	if err := d.dropSession(ctx, req.Session, dests, &a, files); err != nil {
		return a, err
	}
	answers, err := d.askServers(ctx, req.Session, dests)
	a.Lines, a.Kept = answers.lines, append(a.Kept, answers.kept...)
	for _, dest := range d.router.Tombstones.Pending(req.Session) {
		a.Pending = append(a.Pending, project.ServerURL(dest))
	}
	if err != nil {
		a.Detail = err.Error()
	}
	if !answers.found && err == nil && len(files) == 0 && !known {
		e := d.router.Tombstones.Remove(ctx, req.Session)
		return a, errors.Join(e, control.NoSession("there is no session "+req.Session, "`ccship sessions list` lists them"))
	}
	d.log.Info("session forgotten",
		"session", req.Session, "transcripts", a.Transcripts, "lines", a.Lines, "pending", a.Pending)
	return a, nil
}

// streamsOf finds the files of a session and of its agents, and the destinations that may have lines of them.
func (d *Daemon) streamsOf(ctx context.Context, session string) (files []tail.Tracked, dests []string, err error) {
	facts, err := d.db.Files.Routings(ctx)
	if err != nil {
		return nil, nil, err
	}
	servers := map[string]bool{}
	if own := d.servers.Own(); own != "" {
		servers[own] = true
	}
	for _, t := range d.tailer.Files() {
		f := facts[t.File.ID]
		if !slices.Contains(transcript.ForgetNames(d.router.StreamName(&f, t.File)), session) && f.Stream.Parent != session {
			continue
		}
		files = append(files, t)
		if f.Dest != "" {
			servers[f.Dest] = true
		}
	}
	return files, slices.Sorted(maps.Keys(servers)), nil
}

// plainOnes splits the destinations into plain servers, which cannot forget, and the others.
func (d *Daemon) plainOnes(dests []string) (plain, others []string) {
	plain = []string{}
	for _, dest := range dests {
		if d.servers.Protocol(dest) == "plain" {
			plain = append(plain, project.ServerURL(dest))
		} else {
			others = append(others, dest)
		}
	}
	return plain, others
}

// dropSession leaves the tombstone, and drops what waits.
func (d *Daemon) dropSession(ctx context.Context, session string, dests []string, a *control.ForgetResult,
	files []tail.Tracked) error {
	now := time.Now().UTC().Round(0)
	again := now.Add(inFlight)
	err := d.router.Tombstones.Put(ctx, route.Tombstone{Session: session, At: now, Pending: dests, Again: &again,
		Dests: dests})
	if err != nil {
		return err
	}
	d.rewrites.Forget(session)
	d.inbox.Forget(session)
	if err := d.documents.Forget(ctx, session); err != nil {
		return err
	}
	dropped, err := d.dropFiles(ctx, files)
	a.Waiting, a.Dead = dropped.Entries, dropped.Dead
	return err
}

// dropFiles excludes some files from delivery, and drops what waits of them.
func (d *Daemon) dropFiles(ctx context.Context, files []tail.Tracked) (state.Dropped, error) {
	d.router.ExcludeForgotten(files)
	ids := []tail.FileID{}
	for _, t := range files {
		ids = append(ids, t.File.ID)
	}
	defer d.db.Scrub() // no text of a forgotten session stays in the state file
	if err := d.derive.Forget(ctx, ids); err != nil {
		return state.Dropped{}, err
	}
	return d.db.Outbox.Drop(ctx, ids)
}

// forgetAnswers sums up what servers answer when they are asked to forget a session.
type forgetAnswers struct {
	lines int64    // removed
	found bool     // a server had the session
	kept  []string // addresses of the servers that will never remove it
}

// askServers asks servers to forget a session. A server that answered is not pending any more, even if it will never do
// it. The error is the first one.
func (d *Daemon) askServers(ctx context.Context, session string, dests []string) (a forgetAnswers, first error) {
	var done []string
	for _, dest := range dests {
		gone, err := d.servers.Reader(dest).Forget(ctx, session)
		final := remote.Is(err, remote.CodeNoReading) || remote.Is(err, remote.CodeNotAllowed)
		switch {
		case err == nil:
			a.lines, a.found = a.lines+gone.Lines, true
		case remote.Is(err, control.CodeNoSession):
		default:
			first = cmp.Or(first, err)
		}
		if final {
			a.kept = append(a.kept, project.ServerURL(dest))
		}
		if final || err == nil || remote.Is(err, control.CodeNoSession) {
			done = append(done, dest)
		}
	}
	if len(done) == 0 {
		return a, first
	}
	return a, errors.Join(first, d.router.Tombstones.Asked(ctx, session, done))
}

// settleTombstones asks the servers that are still pending, and once more those that may have got a request since.
func (d *Daemon) settleTombstones(ctx context.Context, now time.Time) error {
	for _, x := range d.router.Tombstones.Due(now) {
		dests := x.Pending
		if x.AgainDue(now) {
			dests = x.Dests
			if err := d.router.Tombstones.AskAgain(ctx, x.Session); err != nil {
				return err
			}
		}
		if _, err := d.askServers(ctx, x.Session, dests); err != nil {
			d.log.Debug("cannot ask a server yet to forget a session", "session", x.Session, "err", err)
			return err
		}
	}
	return nil
}

// forgottenAtServer leaves a tombstone for a stream that a server refuses as forgotten: somebody had it forgotten
// there, or here before the state was lost.
func (d *Daemon) forgottenAtServer(stream uint64) {
	ctx := context.Background()
	facts, known, err := d.db.Files.Routing(ctx, tail.FileID(stream))
	if err == nil && known && facts.Decided && !d.router.Forgotten(facts.Stream.SessionID) {
		err = d.router.Tombstones.Put(ctx, route.Tombstone{Session: facts.Stream.SessionID, At: time.Now().UTC().Round(0)})
		d.rewrites.Forget(facts.Stream.SessionID)
		d.log.Info("the server has forgotten a session: it is not sent any more", "session", facts.Stream.SessionID)
	}
	if err == nil && known && facts.Decided && facts.Stream.Parent == "" {
		d.inbox.Forget(facts.Stream.SessionID)
		err = d.documents.Forget(ctx, facts.Stream.SessionID)
	}
	if t, ok := d.tailer.File(tail.FileID(stream)); ok && err == nil {
		_, err = d.dropFiles(ctx, []tail.Tracked{t})
	}
	if err != nil {
		d.log.Warn("cannot note that a session was forgotten", "err", err)
	}
}
