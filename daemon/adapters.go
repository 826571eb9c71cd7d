package daemon

import (
	"context"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/delivery"
	"github.com/ccship/ccship/daemon/derive"
	"github.com/ccship/ccship/daemon/document"
	"github.com/ccship/ccship/daemon/proof"
	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/redact"
)

// settings gives other packages the configuration in force.
type settings struct{ d *Daemon }

func (s settings) Roots() []string { return s.d.conf.Load().Roots }
func (s settings) Locale() string  { return s.d.conf.Load().Locale }
func (s settings) BlobCap() int64  { return s.d.conf.Load().BlobCap }

// wireAttachments makes the collector of attachments. Call it after the tailer is made.
func (d *Daemon) wireAttachments() {
	d.attachments = document.NewAttachments(document.AttachmentDeps{
		Projections: d.projections, Files: d.tailer, Router: d.router, Servers: d.servers, Settings: settings{d},
		Masking: d.masking, Log: d.log,
	})
}

// wireRequests makes the parts that work only on request. Call it after every part that stores something of sessions.
func (d *Daemon) wireRequests() {
	d.syncer = &proof.Syncer{
		State: d.db, Files: d.tailer, Router: d.router, Servers: d.servers, Pause: d.pause, Reconciler: d.reconciler,
		Derived: d.derive, Documents: d.documents, Attachments: d.attachments, Log: d.log,
	}
	d.forgetter = &proof.Forgetter{
		State: d.db, Files: d.tailer, Router: d.router, Servers: d.servers, Derived: d.derive, Documents: d.documents,
		Inbox: d.inbox, Rewrites: d.rewrites, Log: d.log,
	}
	d.remasker = &proof.Remasker{Servers: d.servers, Masking: d.masking, Machine: d.origin.Machine}
	d.wireComparer()
}

// stateListener passes on what the state reports.
type stateListener struct{ d *Daemon }

// RowsQueued implements state.Listener.
func (l stateListener) RowsQueued(dest string) { l.d.servers.Wake(dest) }

// CapacityReturned implements state.Listener.
func (l stateListener) CapacityReturned() { l.d.tailer.Wake() }

// derivePolicy adapts the daemon to derive.Policy.
type derivePolicy struct{ d *Daemon }

func (p derivePolicy) Excluded(t *tail.Tracked, f *state.Routing) bool {
	if p.d.router.Forgotten(p.d.router.StreamName(f, t.File)) {
		return true
	}
	_, why := p.d.router.Destination(f)
	return why != ""
}

func (p derivePolicy) Masker(f *state.Routing) *redact.Masker {
	dest, _ := p.d.router.Destination(f)
	return p.d.masking.For(dest, f.Stream.Cwd)
}

func (p derivePolicy) MessageLimits() derive.MessageLimits {
	c := p.d.conf.Load()
	return derive.MessageLimits{Kept: c.MessagesKept, Input: c.MessageInputLimit, Output: c.MessageOutputLimit}
}

// wireDeriver makes the deriver and its observers. It comes after the relay and the tailer.
func (d *Daemon) wireDeriver(observers ...derive.Observer) {
	d.derive = derive.New(derive.Config{LineCap: d.cfg.LineCap, Log: d.log}, d.projections, d.tailer, derivePolicy{d},
		observers...)
	d.relay.Listeners = []route.Listener{d.attachments, d.rewrites, d.derive}
	d.checkpoints = &derive.Checkpoints{Projections: d.projections, Deriver: d.derive}
}

// Outbox lists what waits, by transcript and server.
func (d *Daemon) Outbox(ctx context.Context, p control.Page) (control.OutboxList, error) {
	s := d.Status(ctx)
	rows, next, err := delivery.Rows(ctx, d.db, p)
	if err != nil {
		return control.OutboxList{}, err
	}
	if s.Servers == nil {
		s.Servers = []control.Server{}
	}
	return control.OutboxList{
		SchemaVersion: control.SchemaVersion, Outbox: *s.Outbox, Pause: s.Pause, Servers: s.Servers, Rows: rows, Next: next,
	}, nil
}

// DeadLetters lists the entries that servers refuse for their content.
func (d *Daemon) DeadLetters(ctx context.Context) (control.DeadLetters, error) {
	return delivery.DeadLetters(ctx, d.db)
}

// RetryDead puts dead letters back into the outbox.
func (d *Daemon) RetryDead(ctx context.Context, req control.DeadRequest) (control.DeadResult, error) {
	return delivery.RetryDead(ctx, d.db, d.reconciler, req)
}

// DropDead removes dead letters for good.
func (d *Daemon) DropDead(ctx context.Context, req control.DeadRequest) (control.DeadResult, error) {
	return delivery.DropDead(ctx, d.db, req)
}

// DropServer removes what waits for a retired server, with its dead letters.
func (d *Daemon) DropServer(ctx context.Context, req control.DropServerRequest) (control.DropServerResult, error) {
	return d.servers.DropServer(ctx, req)
}

// Pause ends sending, for a while or until Resume.
func (d *Daemon) Pause(ctx context.Context, req control.PauseRequest) (control.PauseState, error) {
	return d.pause.Begin(ctx, req)
}

// Resume ends the user's pause.
func (d *Daemon) Resume(ctx context.Context) (control.PauseState, error) {
	was, err := d.pause.End(ctx)
	return control.PauseState{SchemaVersion: control.SchemaVersion, Was: was}, err
}

// Flush ends every wait: back-off, that for servers that refuse, and the Retry-After of servers. The user's own pause
// goes on.
func (d *Daemon) Flush(context.Context) (control.FlushResult, error) {
	d.servers.Flush()
	d.reconciler.Retry()
	return control.FlushResult{
		SchemaVersion: control.SchemaVersion, Paused: d.pause.Current() != nil, Waiting: d.db.Outbox.Usage().Entries,
	}, nil
}

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
