// Package inbox holds what a session's Claude is told: an introduction at every start of the session, and notices, each
// at most once. It stores introductions and makes the texts, in the user's language. It does not know who makes
// notices, or how a hook passes a text on.
package inbox

import (
	"context"
	"log/slog"
	"sync"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/derive"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
)

// Sessions finds transcripts. Its methods must be safe for concurrent use.
type Sessions interface {
	// StreamID returns the file of a session's main transcript; false if there is none yet.
	StreamID(session string) (tail.FileID, bool)
	// Forgotten reports whether the user had a session forgotten.
	Forgotten(session string) bool
}

// Documents are the documents linked to sessions. Its method must be safe for concurrent use.
type Documents interface {
	// Linked returns the paths of a session's documents in the order in which they were linked.
	Linked(session string) []string
}

// Settings is the configuration in force, which may change at any time. Its method must be safe for concurrent use.
type Settings interface {
	// Locale is the language of texts: "en" or "ko".
	Locale() string
}

// Deps is what an Inbox needs. All fields are required.
type Deps struct {
	Projections   *projection.DB
	Deriver       *derive.Deriver // answers the titles of sessions
	Introductions *Introductions
	Sessions      Sessions
	Documents     Documents
	Settings      Settings
	Log           *slog.Logger
}

// Inbox answers hooks. Its methods are safe for concurrent use.
type Inbox struct {
	deps    Deps
	notices *notices
}

// New returns an inbox. Run starts it.
func New(d Deps) *Inbox { return &Inbox{deps: d, notices: newNotices(d.Projections, d.Log)} }

// Run serves requests until ctx is done. Then it makes introductions durable, and puts unconfirmed notices back.
func (b *Inbox) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { b.deps.Introductions.run(ctx) })
	err := b.notices.run(ctx)
	wg.Wait()
	return err
}

// Forget drops what is in memory for a session. It does not touch the state.
func (b *Inbox) Forget(session string) {
	b.notices.forget(session)
	b.deps.Introductions.forget(session)
}

// Pending returns the notices for a session's Claude. A request with a receipt confirms that they arrived.
func (b *Inbox) Pending(ctx context.Context, req control.PendingRequest) (control.Pending, error) {
	a := control.Pending{SchemaVersion: control.SchemaVersion}
	if req.Receipt != "" {
		n := b.notices.confirm(req.Receipt)
		if n == 0 {
			return a, control.NewError(control.CodeNotFound, "nothing waits for this receipt",
				"it came too late: the notices go to the next hook")
		}
		b.deps.Log.Debug("notices have arrived", "session", req.Session, "notices", n, "hook", req.Event)
		return a, nil
	}
	list := b.notices.take(ctx, req.Session)
	a.Text, a.Notices = noticeText(b.deps.Settings.Locale(), list), len(list)
	if req.Confirm && len(list) > 0 {
		a.Receipt = b.notices.lease(req.Session, list)
	}
	return a, nil
}
