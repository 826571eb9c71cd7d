package derive

import (
	"cmp"
	"container/list"
	"encoding"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ccship/ccship/server"
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
	texts   texts
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
	for _, r := range records(l) {
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
			h.carried(line, at, kindOf(e.Speaker), e.Text)
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

// keptBytes bounds what is kept of streams that were derived last, about.
const keptBytes = 48 << 20

// kept are the folds of streams that were derived last, so that the next line of a live session costs that line.
// The zero value is ready; safe for concurrent use.
type kept struct {
	mu    sync.Mutex
	by    map[int64]*list.Element // of recent, whose values are *derivation; guarded by mu
	order list.List               // most recently used in front
	bytes int
}

// take begins the work on a task: from what is kept of it, if that is as the task says.
func (k *kept) take(store Derivable, task *server.Task) *derivation {
	fresh := &derivation{store: store, task: *task, facts: task.Summary, before: task.Summary, clock: task.Summary.Ended,
		turn: -1}
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.by[task.Stream]
	if e == nil {
		return fresh
	}
	w := k.remove(e)
	if w.task.Position != task.Position || w.task.Masked != task.Masked || w.task.Version != task.Derived {
		return fresh // another worker derived it since, maybe from other lines
	}
	w.task, w.before = *task, task.Summary
	return w
}

// put keeps what a task left.
func (k *kept) put(w *derivation) {
	w.weight = w.size()
	if w.weight > keptBytes/4 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.by == nil {
		k.by = map[int64]*list.Element{}
	}
	if e := k.by[w.task.Stream]; e != nil {
		k.remove(e) // another worker's, whose lease had ended
	}
	k.by[w.task.Stream] = k.order.PushFront(w)
	for k.bytes += w.weight; k.bytes > keptBytes; {
		k.remove(k.order.Back())
	}
}

// remove is called with mu held.
func (k *kept) remove(e *list.Element) *derivation {
	w := k.order.Remove(e).(*derivation) //nolint:forcetypeassert // order has nothing else
	delete(k.by, w.task.Stream)
	k.bytes -= w.weight
	return w
}

// momentPlace identifies a moment in its stream.
type momentPlace struct {
	line int64
	part int
}

// happened adds a record of the newest view to the timeline.
func (h *extractor) happened(line int64, r *transcript.Record, events []session.Event) {
	if h.times == nil {
		return
	}
	for _, m := range h.times.Add(line, r, events) {
		if h.moments == nil {
			h.moments = map[momentPlace]session.Moment{}
		}
		h.moments[momentPlace{m.Line, m.Part}] = m
	}
}

// momentsOf returns the moments of a step in their stored form, in order.
func (h *extractor) momentsOf() []server.Moment {
	var out []server.Moment
	for _, m := range slices.SortedFunc(maps.Values(h.moments), session.CompareMoments) {
		x := server.Moment{Line: m.Line, Part: int64(m.Part)}
		if !m.Gone {
			data, err := json.Marshal(m)
			if err != nil {
				continue // a time that JSON does not have: the record is damaged
			}
			x.Kind, x.Data = string(m.Kind), data
		}
		out = append(out, x)
	}
	return out
}

var errDerivedState = errors.New("not a state of this version")

// encodeState returns the state of a stream's fold, of its timeline, and of what reads its edits.
func encodeState(parts ...encoding.BinaryMarshaler) (out []byte, err error) {
	for _, p := range parts {
		b, err := p.MarshalBinary()
		if err != nil {
			return nil, err
		}
		out = append(binary.AppendUvarint(out, uint64(len(b))), b...)
	}
	return out, nil
}

// decodeState reads what encodeState wrote. After an error all are empty.
func decodeState(state []byte, fold *session.Fold, times *session.TimelineBuilder, wrote *provenance.Builder) error {
	for _, p := range []encoding.BinaryUnmarshaler{fold, times, wrote} {
		n, size := binary.Uvarint(state)
		err := errDerivedState
		if size > 0 && n <= uint64(len(state)-size) {
			err = p.UnmarshalBinary(state[size:][:n])
			state = state[size:][n:]
		}
		if err != nil {
			*fold, *times, *wrote = session.Fold{}, session.TimelineBuilder{}, provenance.Builder{}
			return err
		}
	}
	return nil
}
