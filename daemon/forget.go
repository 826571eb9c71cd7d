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

// Forget removes a session everywhere but on disk: first a note is left that it is not to be sent, so that nothing
// comes after; then what waits is dropped, and the servers are told. Those that cannot be reached are told later.
func (d *Daemon) Forget(ctx context.Context, req control.ForgetRequest) (control.ForgetResult, error) {
	a := control.ForgetResult{
		SchemaVersion: control.SchemaVersion, Session: req.Session, Owed: []string{}, Kept: []string{}, OnDisk: []string{},
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
	if err := d.bury(ctx, req.Session, dests, &a, files); err != nil {
		return a, err
	}
	told, err := d.tellForgotten(ctx, req.Session, dests)
	a.Lines, a.Kept = told.lines, append(a.Kept, told.kept...)
	for _, dest := range d.router.Tombstones.Owed(req.Session) {
		a.Owed = append(a.Owed, project.ServerURL(dest))
	}
	if err != nil {
		a.Detail = err.Error()
	}
	if !told.found && err == nil && len(files) == 0 && !known {
		e := d.router.Tombstones.Remove(ctx, req.Session)
		return a, errors.Join(e, control.NoSession("there is no session "+req.Session, "`ccship sessions list` lists them"))
	}
	d.log.Info("session forgotten", "session", req.Session, "transcripts", a.Transcripts, "lines", a.Lines, "owed", a.Owed)
	return a, nil
}

// streamsOf finds a session's files, its agents' too, and the destinations that may have something of them.
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

// plainOnes takes out the servers that are known to take conversations only.
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

// bury leaves the note, and drops what waits.
func (d *Daemon) bury(ctx context.Context, session string, dests []string, a *control.ForgetResult,
	files []tail.Tracked) error {
	now := time.Now().UTC().Round(0)
	again := now.Add(inFlight)
	err := d.router.Tombstones.Put(ctx, route.Tombstone{Session: session, At: now, Owed: dests, Again: &again,
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

// dropFiles removes what waits of some files that are not to be sent any more, and notes that they are not.
func (d *Daemon) dropFiles(ctx context.Context, files []tail.Tracked) (state.Dropped, error) {
	d.router.ExcludeForgotten(files)
	ids := []tail.FileID{}
	for _, t := range files {
		ids = append(ids, t.File.ID)
	}
	defer d.db.Scrub() // of a forgotten session no text is left behind
	if err := d.derive.Forget(ctx, ids); err != nil {
		return state.Dropped{}, err
	}
	return d.db.Outbox.Drop(ctx, ids)
}

// told is what servers said when they were told to forget a session.
type told struct {
	lines int64    // that they removed
	found bool     // one of them had it
	kept  []string // addresses of those that will never do it
}

// tellForgotten tells servers to forget a session. Whom it told, or who never will, is not owed any more; the error is
// the first of the others, or of those that never will.
func (d *Daemon) tellForgotten(ctx context.Context, session string, dests []string) (a told, first error) {
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
	return a, errors.Join(first, d.router.Tombstones.Told(ctx, session, done))
}

// settleTombstones tells servers that could not be told before, and once more those that may have got a request since.
func (d *Daemon) settleTombstones(ctx context.Context, now time.Time) error {
	for _, x := range d.router.Tombstones.Due(now) {
		dests := x.Owed
		if x.AgainDue(now) {
			dests = x.Dests
			if err := d.router.Tombstones.OweAgain(ctx, x.Session); err != nil {
				return err
			}
		}
		if _, err := d.tellForgotten(ctx, x.Session, dests); err != nil {
			d.log.Debug("a server cannot be told yet to forget a session", "session", x.Session, "err", err)
			return err
		}
	}
	return nil
}

// heardForgotten takes in that a server keeps nothing of a stream any more: someone forgot it there, or here before
// the state was lost.
func (d *Daemon) heardForgotten(stream uint64) {
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
