package derive

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/extract"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/provenance"
	"github.com/ccship/ccship/transcript/session"
)

// extractor collects texts and answers from the lines of a step.
type extractor struct {
	w       *derivation
	session string // the stream's: an agent's is that of its parent
	agent   bool   // the transcript is an agent's
	fold    *session.Fold
	times   *session.TimelineBuilder // nil: no moments
	wrote   *provenance.Builder
	edits   []provenance.Edit
	keep    bool // texts and answers, not only the fold
	bytes   int  // of lines
	text    int  // bytes of texts
	texts   extract.Texts
	undated int // texts, the first ones, that came before any time
	answers map[string]transcript.UsageSample
	moments map[momentPlace]session.Moment
}

// extractor begins to collect from a stream.
func (w *derivation) extractor(snap server.Snapshot) extractor {
	stream := snap.Session()
	return extractor{w: w, session: cmp.Or(stream.Parent, stream.SessionID), agent: stream.Parent != ""}
}

// line adds a stored line. errStepFull means that it is the step's last.
func (h *extractor) line(l server.Line) error {
	from := len(h.texts.List)
	if h.keep {
		if h.texts.Past(l); len(h.texts.List) > from {
			h.w.turn = l.Index
		}
	}
	for _, r := range extract.Records(l) {
		h.record(l.Index, r)
	}
	for i := range h.texts.List[from:] {
		t := &h.texts.List[from+i]
		if h.w.turn < 0 {
			h.w.turn = l.Index
		}
		t.Turn = h.w.turn
		h.text += len(t.Text)
	}
	h.bytes += len(l.Raw)
	if h.bytes >= stepBytes || h.text >= stepText || len(h.answers) >= stepAnswers || len(h.moments) >= stepMoments {
		return errStepFull
	}
	return nil
}

func (h *extractor) record(line int64, r transcript.Record) {
	if r.Time.After(h.w.clock) {
		h.w.clock = r.Time
		h.date()
	}
	h.w.origin.add(h.w.task.SessionID, &r)
	events := h.fold.Add(line, r)
	h.happened(line, &r, events)
	for _, e := range events {
		if e.Kind == session.PromptEvent {
			h.w.turn = line
		}
	}
	edits := h.wrote.Add(line, &r, events)
	if !h.keep {
		return
	}
	h.edits = append(h.edits, edits...)
	at := r.Time
	if at.IsZero() {
		at = h.w.clock
	}
	if at.IsZero() {
		at = h.w.arrived
	}
	for _, e := range events {
		switch {
		case e.Kind == session.UsageEvent:
			if l := r.Lineage; l != nil && l.ForkedFrom != "" {
				e.Usage.Time = cmp.Or(e.Usage.Time, at).Add(copied)
			}
			h.answer(*e.Usage, e.SessionID, at)
		case r.Type == "queue-operation" && (e.Kind == session.PromptEvent || e.Kind == session.MessageEvent):
			h.carried(line, at, extract.KindOf(e.Speaker), e.Text)
		}
	}
	h.texts.Record(line, at, &r)
	if h.w.clock.IsZero() {
		h.undated = len(h.texts.List)
	}
}

// date gives the first time to texts that came before it, unless they had arrived by then. When they arrived says
// little of an imported transcript: all old sessions would seem to have something new.
func (h *extractor) date() {
	for i := range h.texts.List[:h.undated] {
		if t := &h.texts.List[i]; h.w.clock.Before(t.Time) {
			t.Time = h.w.clock
		}
	}
	h.undated = 0
}

// copied is how much later than the original a copied answer is said to be: of copies that are alike, the earliest
// counts. Records have milliseconds.
const copied = time.Microsecond

// answer keeps the usage of an answer: of its lines, the one with the most complete numbers. session is what its record
// says. Some gateways give neither request ids nor message ids of their own: then an answer is known within its session
// only.
func (h *extractor) answer(u transcript.UsageSample, session string, at time.Time) {
	if u.Time.IsZero() {
		u.Time = at
	}
	key := u.Key()
	if key == "" {
		return
	}
	if u.RequestID == "" {
		key += "@" + cmp.Or(session, h.session)
	}
	if h.answers == nil {
		h.answers = map[string]transcript.UsageSample{}
	}
	if before, ok := h.answers[key]; !ok || u.Supersedes(before) {
		h.answers[key] = u
	}
}

// carried keeps what the model received from the queue: its line does not have it.
func (h *extractor) carried(line int64, at time.Time, kind, text string) {
	from := len(h.texts.List)
	if h.texts.Add(line, at, kind, text); len(h.texts.List) > from {
		h.texts.List[from].Carried = true
	}
}

// into puts what was collected into a derivation.
func (h *extractor) into(d *server.Derivation) {
	d.Moments, d.Edits = h.momentsOf(), h.edits
	d.Texts = h.texts.List
	for i := range d.Texts {
		d.Texts[i].Generation = d.Position.Generation
	}
	for _, key := range slices.Sorted(maps.Keys(h.answers)) {
		u := h.answers[key]
		d.Answers = append(d.Answers, server.Answer{
			Key: key, Sidechain: u.Sidechain || h.agent, Model: u.Model, Time: u.Time,
			Tokens: server.Tokens{
				Answers: 1, Input: u.Usage.Input, Output: u.Usage.Output, CacheRead: u.Usage.CacheRead,
				CacheWrite5m: u.Usage.CacheWrite5m, CacheWrite1h: u.Usage.CacheWrite1h,
				Searches: u.Usage.WebSearches,
			},
		})
	}
}
