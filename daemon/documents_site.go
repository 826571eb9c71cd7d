package daemon

import (
	"context"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/derive"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// wireDocuments makes what looks after linked documents. Nothing runs yet.
func (d *Daemon) wireDocuments(ctx context.Context) (derive.Observer, error) {
	x := newDocuments(d.db, d.introductions, d.log)
	x.conf, x.locate, x.guard, x.optout = d.conf.Load, d.siteOf, d.protects, d.router.WhyExcluded
	d.db.Missed = x.missed
	d.documents = x
	return &reader{documents: x, written: func(t time.Time) { d.wishes.written.Store(t.UnixMilli()) }}, x.load(ctx)
}

// problem is why nothing of a session's documents is sent; "" when it is.
func (s *site) problem() string {
	if s.withheld == "" {
		return ""
	}
	return "it stays on this machine: " + s.withheld
}

// siteOf finds a session by the whole name of its stream. One that has no transcript yet is known if it was introduced.
func (d *Daemon) siteOf(ctx context.Context, session string) (site, error) {
	session = transcript.MainSession(session, "")
	s := site{session: session}
	if d.router.Forgotten(session) {
		return s, control.NoSession("session "+session+" was forgotten",
			"what belongs to it is not kept or sent any more")
	}
	if id, ok := d.router.StreamID(session); ok {
		facts, known, err := d.db.Facts(ctx, id)
		if err != nil {
			return s, err
		}
		if known {
			s.file, s.cwd = id, facts.Stream.Cwd
			s.dest, s.withheld = d.goesTo(&facts)
		}
	} else {
		d.siteApart(&s)
	}
	if t, ok := d.tailer.File(s.file); ok && s.file != 0 {
		s.written = time.Unix(0, t.File.Stat.ModTime)
	}
	if s.cwd == "" {
		i, found, err := d.introductions.Get(ctx, session)
		if err != nil {
			return s, err
		}
		if found {
			s.cwd = i.Cwd
		}
	}
	if s.cwd == "" && s.file == 0 {
		return s, d.router.UnknownSession(session)
	}
	return s, nil
}

// siteApart finds a session that is kept on this machine, and so has no stream.
func (d *Daemon) siteApart(s *site) {
	for id, out := range d.router.Excluded() {
		if t, ok := d.tailer.File(id); ok && t.File.Kind == tail.Main && t.File.Name == s.session {
			s.cwd, s.withheld = out.Cwd, out.Why
			return
		}
	}
}

// goesTo is where what is queued for a transcript goes, as its project and the configuration have it now; "" nowhere,
// and with why when it is to stay here. While the transcript itself is on its way to another server, nothing is queued.
func (d *Daemon) goesTo(f *state.Facts) (dest, why string) {
	dest, why = d.router.Destination(f)
	if dest != f.Dest {
		return "", why
	}
	return dest, why
}
