package document

import (
	"time"

	"github.com/ccship/ccship/daemon/derive"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
)

// observer finds edits by Claude's tools, and Claude's requests for links, in transcripts. It acts only on watched
// lines, which include those written while the daemon was away. Its fields belong to the current step.
type observer struct {
	tracker *Tracker

	watched bool   // the step has lines that were just written
	session string // whose documents are meant
	edits   []edit
	asks    []projection.LinkRequest
}

var _ derive.SaveObserver = (*observer)(nil)

// Observer returns the observer that tells t what happens in transcripts.
func (t *Tracker) Observer() derive.SaveObserver { return &observer{tracker: t} }

// maxToolID limits the part of a tool use id that tells a request from others of its line, in bytes. It is part of a
// key.
const maxToolID = 200

// Begin starts a step.
func (o *observer) Begin(s *derive.FoldStep) {
	o.session = transcript.MainSession(s.Facts.Stream.SessionID, s.Facts.Stream.Parent)
	o.edits, o.asks, o.watched = o.edits[:0], nil, false
}

// Event records edits and requests.
func (o *observer) Event(s *derive.FoldStep, e *session.Event, watched bool) {
	if !watched {
		return
	}
	o.watched = true
	switch e.Kind {
	case session.FileEvent:
		o.edits = append(o.edits, edit{e.Path, e.Line})
	case session.LinkEvent, session.UnlinkEvent:
		link := e.Kind == session.LinkEvent
		if !transcript.ValidSession(o.session) ||
			!o.tracker.answers.take(e.Nonce, link, e.Path, answerPlace{o.session, e.Line}) {
			return
		}
		o.asks = append(o.asks, projection.LinkRequest{
			Session: o.session, Line: e.Line, Tool: e.ToolID[:min(len(e.ToolID), maxToolID)],
			Link: link, Path: e.Path, Base: s.Session.Summary().Cwd,
		})
	}
}

// End passes edits to the tracker at once: the files show them, even if the step fails. Requests wait until the step is
// durable.
func (o *observer) End(s *derive.FoldStep) error {
	s.Effects.LinkRequests = append(s.Effects.LinkRequests, o.asks...)
	if o.watched {
		o.tracker.lastWritten.Store(time.Now().UnixMilli())
	}
	o.tracker.noteActivity(o.session, o.edits)
	return nil
}

// Saved passes durable requests to the tracker.
func (o *observer) Saved(d *projection.Derivation) { o.tracker.noteRequests(d.LinkRequests) }

// noteActivity makes the checks of a session's documents earlier, because the session continues or its tools changed
// files.
func (t *Tracker) noteActivity(session string, edits []edit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[session]
	if s == nil || !s.needsChecks() {
		return
	}
	now := time.Now()
	if s.active = now; s.due.After(now.Add(t.activeInterval)) || s.unsent() {
		s.due = now
		t.bell.Ring()
	}
	if len(edits) > 0 {
		s.edits = append(s.edits, edits...)
		t.bell.Ring()
	}
}

func (t *Tracker) noteRequests(asks []projection.LinkRequest) {
	if len(asks) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range asks {
		s := t.session(asks[i].Session)
		s.requested, s.active = true, time.Now()
	}
	t.bell.Ring()
}
