package daemon

import (
	"context"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/document"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// wireDocuments makes the tracker of documents. It starts nothing.
func (d *Daemon) wireDocuments(ctx context.Context) (err error) {
	d.guard = document.NewGuard(settings{d}, d.db)
	d.documents, err = document.Load(ctx, document.Deps{
		Projections: d.projections, Locator: locator{d}, Introductions: d.introductions, Settings: settings{d},
		Guard: d.guard, Masking: d.masking, Log: d.log,
	})
	if err != nil {
		return err
	}
	d.linkRequests = document.NewLinkRequests(d.documents, d.origin.Machine, d.servers)
	d.projections.Missed = d.documents.NotSent
	return nil
}

// Config returns the configuration in force.
func (s settings) Config() *config.Config { return s.d.conf.Load() }

// locator tells the tracker of documents where sessions are.
type locator struct{ d *Daemon }

// Excluded returns why files in a folder must not be sent; "" if they may.
func (l locator) Excluded(dir string) string { return l.d.router.WhyExcluded(dir) }

// Locate finds a session by the full name of its stream. A session without a transcript is known once it was
// introduced.
func (l locator) Locate(ctx context.Context, session string) (document.Location, error) {
	session = transcript.MainSession(session, "")
	loc := document.Location{Session: session}
	if l.d.router.Forgotten(session) {
		return loc, control.NoSession("session "+session+" was forgotten",
			"what belongs to it is not kept or sent any more")
	}
	if id, ok := l.d.router.StreamID(session); ok {
		facts, known, err := l.d.db.Files.Routing(ctx, id)
		if err != nil {
			return loc, err
		}
		if known {
			loc.File, loc.Cwd = id, facts.Stream.Cwd
			loc.Dest, loc.Withheld = l.destination(&facts)
		}
	} else {
		l.locateExcluded(&loc)
	}
	if t, ok := l.d.tailer.File(loc.File); ok && loc.File != 0 {
		loc.Written = time.Unix(0, t.File.Stat.ModTime)
	}
	if loc.Cwd == "" {
		i, found, err := l.d.introductions.Get(ctx, session)
		if err != nil {
			return loc, err
		}
		if found {
			loc.Cwd = i.Cwd
		}
	}
	if loc.Cwd == "" && loc.File == 0 {
		return loc, l.d.router.UnknownSession(session)
	}
	return loc, nil
}

// locateExcluded finds a session that stays on this machine, and so has no stream.
func (l locator) locateExcluded(loc *document.Location) {
	for id, out := range l.d.router.Excluded() {
		if t, ok := l.d.tailer.File(id); ok && t.File.Kind == tail.Main && t.File.Name == loc.Session {
			loc.Cwd, loc.Withheld = out.Cwd, out.Why
			return
		}
	}
}

// destination returns the server that a transcript's lines go to now; "" for none, and with why if they stay here.
// While the transcript itself moves to another server, nothing is queued.
func (l locator) destination(f *state.Routing) (dest, why string) {
	dest, why = l.d.router.Destination(f)
	if dest != f.Dest {
		return "", why
	}
	return dest, why
}
