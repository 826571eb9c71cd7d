package derive

import (
	"context"
	"slices"
	"strings"

	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
)

// observer finds in transcripts what the model was shown by hooks, and which tools it has called. Its fields belong to
// the current step, but for unsaved.
type observer struct {
	notices *notices
	tools   []string // ids of the calls
	tokens  int64    // in use
	changed bool     // tokens are known
	unsaved map[tail.FileID]reading
}

// reading is tool calls whose notices are not in the state yet.
type reading struct {
	session string
	tools   []string
}

var (
	_ RecordObserver = &observer{}
	_ SaveObserver   = &observer{}
)

// Observer returns the observer that tells n what transcripts show.
func (n *notices) Observer() RecordObserver {
	return &observer{notices: n, unsaved: map[tail.FileID]reading{}}
}

// Begin starts a step.
func (o *observer) Begin(*FoldStep) { o.tools, o.tokens, o.changed = nil, 0, false }

// Event notes tool calls, and how full the context is.
func (o *observer) Event(s *FoldStep, e *session.Event, watched bool) {
	switch {
	case !watched || s.File.File.Kind != tail.Main:
	case e.Kind == session.ToolStartEvent:
		o.tools = append(o.tools, e.ToolID)
	case e.Kind == session.ContextEvent:
		o.tokens, o.changed = e.Context.Tokens, true
	case e.Kind == session.LinkEvent, e.Kind == session.UnlinkEvent:
		o.notices.introductions.shownOn(s.Facts.Stream.SessionID, e.Line)
	case e.Kind == session.RewindEvent:
		o.notices.introductions.rewound(s.Facts.Stream.SessionID, e.Rewind)
	}
}

// End lets hooks go on that wait for the step's tool calls: at once when nothing of it is to be shown, otherwise once
// that is saved.
func (o *observer) End(s *FoldStep) error {
	name := s.Facts.Stream.SessionID
	if o.changed {
		o.notices.follow.context(name, o.tokens, s.Session.TokenBudget().Limit)
	}
	switch {
	case len(o.tools) == 0:
	case len(s.Effects.Notices) == 0:
		o.notices.follow.read(name, o.tools)
	default:
		o.unsaved[s.File.File.ID] = reading{name, append(o.unsaved[s.File.File.ID].tools, o.tools...)}
	}
	return nil
}

// Saved lets hooks go on that wait for what is saved now.
func (o *observer) Saved(d *projection.Derivation) {
	if r, found := o.unsaved[d.File]; found && len(d.Notices) > 0 {
		delete(o.unsaved, d.File)
		o.notices.follow.read(r.session, r.tools)
	}
}

// Record looks at what a hook has shown the model, and counts the model's answers.
func (o *observer) Record(s *FoldStep, r *transcript.Record, watched bool) {
	if !watched || s.File.File.Kind != tail.Main {
		return
	}
	name := s.Facts.Stream.SessionID
	switch {
	case r.Type == "attachment":
		text := transcript.HookText(r)
		if text == "" {
			return
		}
		s.Effects.Shown = append(s.Effects.Shown, o.notices.shown(name, text)...)
		if introduces(text) || ofDocuments(text) {
			o.notices.introductions.shownOn(name, s.Line-1)
		}
		if introduces(text) {
			o.notices.introductions.markShown(context.Background(), name)
		}
	case r.Type == "assistant" && !r.Sidechain && r.Message != nil && !r.APIError:
		o.notices.answered(name, r.Message.ID, r.Version)
	}
}

// contains reports whether a text that the model was shown has a notice in it.
func contains(text string, p *projection.Notice) bool {
	if p.Checkpoint != "" {
		return strings.Contains(text, p.Checkpoint)
	}
	line := documentLine(p)
	return slices.ContainsFunc(strings.Split(text, "\n"), func(s string) bool { return strings.TrimLeft(s, " ") == line })
}

// ofDocuments reports whether a text that the model was shown has notices of documents in it.
func ofDocuments(text string) bool {
	for _, locale := range []string{"en", korean} {
		w := noticeWordsIn(locale)
		if strings.Contains(text, w.document) || strings.Contains(text, w.refused) {
			return true
		}
	}
	return false
}

// introduces reports whether a text that the model was shown has an introduction in it.
func introduces(text string) bool {
	return strings.Contains(text, initWordsIn("en").started) || strings.Contains(text, initWordsIn(korean).started)
}
