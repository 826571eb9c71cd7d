package derive

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// sessions finds transcripts. Its methods must be safe for concurrent use.
type sessions interface {
	// StreamID returns the file of a session's main transcript; false if there is none yet.
	StreamID(session string) (tail.FileID, bool)
	// Forgotten reports whether the user had a session forgotten.
	Forgotten(session string) bool
}

// documents are the documents linked to sessions. Its method must be safe for concurrent use.
type documents interface {
	// Linked returns the paths of a session's documents in the order in which they were linked.
	Linked(session string) []string
}

// settings is the configuration in force, which may change at any time. Its method must be safe for concurrent use.
type settings interface {
	// Locale is the language of texts: "en" or "ko".
	Locale() string
}

// Deps is what an Inbox needs. All fields are required.
type Deps struct {
	Projections   *projection.DB
	Deriver       *Deriver // answers the titles of sessions
	Introductions *Introductions
	Notices       *notices
	Sessions      sessions
	Documents     documents
	Settings      settings
	Log           *slog.Logger
}

// Inbox answers hooks. Its methods are safe for concurrent use.
type Inbox struct {
	deps    Deps
	notices *notices
}

// NewInbox returns an inbox. Run starts it.
func NewInbox(d Deps) *Inbox { return &Inbox{deps: d, notices: d.Notices} }

// Run makes durable what hooks have passed on, until ctx is done.
func (b *Inbox) Run(ctx context.Context) error { return b.notices.run(ctx) }

// Forget drops what is in memory for a session. It does not touch the state.
func (b *Inbox) Forget(session string) {
	b.notices.forget(session)
	b.deps.Introductions.forget(session)
}

// Pending returns what a session's Claude is to be shown now: the introduction if the session's start missed it, and
// notices. A request with a receipt confirms that an earlier answer was printed.
func (b *Inbox) Pending(ctx context.Context, req control.PendingRequest) (control.Pending, error) {
	a := control.Pending{SchemaVersion: control.SchemaVersion}
	if req.Receipt != "" {
		n, known := b.notices.confirm(ctx, req.Receipt)
		if !known {
			return a, control.NewError(control.CodeNotFound, "nothing waits for this receipt",
				"the daemon was started again meanwhile: the text goes to the next hook as well")
		}
		b.deps.Log.Debug("a hook has printed its text", "session", req.Session, "notices", n, "hook", req.Event)
		return a, nil
	}
	var introduction string
	var linked []string
	if req.Confirm { // a hook that does not confirm would get it every time
		introduction, linked = b.missed(ctx, req)
	}
	if req.Tool != "" && introduction == "" && !b.notices.any(req.Session) {
		b.notices.follow.await(ctx, req.Session, req.Tool)
	}
	l, receipt := b.notices.lend(req.Session, introduction != "", func(*projection.Notice) bool { return true })
	if !l.init {
		introduction, linked = "", nil
	}
	a.Text, a.Notices = noticeText(b.deps.Settings.Locale(), without(l.list, linked)), len(l.list)
	a.Text = strings.Trim(introduction+"\n"+a.Text, "\n")
	if !req.Confirm {
		b.notices.confirm(ctx, receipt)
		return a, nil
	}
	a.Receipt = receipt
	return a, nil
}

// missed returns the introduction of a session whose Claude was not shown it, and the documents in it; "" if it was
// shown.
func (b *Inbox) missed(ctx context.Context, req control.PendingRequest) (text string, linked []string) {
	if !transcript.ValidSession(req.Session) {
		return "", nil
	}
	session := transcript.MainSession(req.Session, "")
	if b.deps.Sessions.Forgotten(session) || !b.deps.Introductions.missing(ctx, session) {
		return "", nil
	}
	text, linked, err := b.introduction(ctx, session, control.InitQuery{Cwd: req.Cwd})
	if err != nil {
		return "", nil // the working directory is not known yet
	}
	return text, linked
}

// named reports whether a list of linked documents says all that a notice does.
func named(p *projection.Notice, linked []string) bool {
	return p.Kind == projection.NoticeDocument && p.Reason == "" && slices.Contains(linked, p.Path)
}

// without leaves out the notices of documents that are named already.
func without(list []projection.Notice, linked []string) (left []projection.Notice) {
	for _, p := range list {
		if !named(&p, linked) {
			left = append(left, p)
		}
	}
	return left
}
