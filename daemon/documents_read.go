package daemon

import (
	"time"

	"github.com/ccship/ccship/daemon/derive"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
)

// reader reads in transcripts what becomes of documents: Claude's tools change them, and ask for links. What lies in a
// history is not acted on, nor what a fork copied; what was written while the daemon was away, in a transcript that it
// had watched, is.
type reader struct {
	documents *documents
	written   func(time.Time) // hears that a session is being written

	news    bool   // lines were written just now
	session string // whose documents the transcript's are
	edits   []edit
	asks    []state.DocumentAsk
}

// maxToolID is how much of a tool use id tells one ask from the others of its line, in bytes: it is part of a key.
const maxToolID = 200

func (r *reader) Begin(p *derive.FoldStep) {
	r.session, r.edits, r.asks = transcript.MainSession(p.Facts.Stream.SessionID, p.Facts.Stream.Parent), r.edits[:0], nil
	r.news = false
}

func (r *reader) Event(p *derive.FoldStep, e *session.Event, watched bool) {
	if !watched {
		return
	}
	r.news = true
	switch e.Kind {
	case session.FileEvent:
		r.edits = append(r.edits, edit{e.Path, e.Line})
	case session.LinkEvent, session.UnlinkEvent:
		if !transcript.ValidSession(r.session) {
			return
		}
		r.asks = append(r.asks, state.DocumentAsk{
			Session: r.session, Line: e.Line, Tool: e.ToolID[:min(len(e.ToolID), maxToolID)], Link: e.Kind == session.LinkEvent, Path: e.Path,
			Base: p.Session.Summary().Cwd,
		})
	}
}

// end leaves edits to the documents' own loop at once: their files show what they did, whatever becomes of the step. What
// is asked for is done when the step is durable.
func (r *reader) End(p *derive.FoldStep) error {
	p.Effects.Asks = append(p.Effects.Asks, r.asks...)
	if r.news {
		r.written(time.Now())
	}
	r.documents.stirred(r.session, r.edits)
	return nil
}

// stirred hears that a session goes on, and which files its tools changed.
func (x *documents) stirred(session string, edits []edit) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.shelves[session]
	if s == nil || !s.wanted() {
		return
	}
	now := time.Now()
	if s.active = now; s.due.After(now.Add(x.hot)) || s.unsent() {
		s.due = now
		x.ring()
	}
	if len(edits) > 0 {
		s.edits = append(s.edits, edits...)
		x.ring()
	}
}

// unsent says whether there is something that was not queued for any server yet.
func (s *shelf) unsent() bool {
	for _, p := range s.papers {
		if p.Dest == "" {
			return true
		}
	}
	return false
}

// Saved hears of a step that is durable.
func (r *reader) Saved(d *state.Derivation) { r.documents.stored(d) }

func (x *documents) stored(d *state.Derivation) {
	if len(d.Asks) == 0 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range d.Asks {
		s := x.shelf(d.Asks[i].Session)
		s.asked, s.active = true, time.Now()
	}
	x.ring()
}
