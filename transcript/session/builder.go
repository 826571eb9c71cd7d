package session

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/transcript"
)

// Limits on what a Builder remembers. What is forgotten keeps the figures it had.
const (
	maxOpenCalls      = 48 // tool calls without a result
	maxWaitCandidates = 32 // calls of a turn of which it is not known whether they waited
	maxOpenAgents     = 24
	maxBack           = 8   // rewinds, and links
	maxLabel          = 120 // characters of a name or a call
)

// TimelineBuilder makes moments. The zero value is at the beginning of a transcript. It is bounded: its encoded state
// is at most about 64 KiB, an ordinary session's a few KiB. For one goroutine.
type TimelineBuilder struct{ state }

// state is what a Builder remembers.
type state struct {
	Line           int64     `json:"line"` // on which Part counts
	Part           int       `json:"part"`
	Turn           int64     `json:"turn"`
	Mode           string    `json:"mode"`
	Open           *kept     `json:"open,omitempty"` // the moment that began the turn
	Known          int64     `json:"known"`          // milliseconds of the turn that were waited for sure
	Asked          int64     `json:"asked"`          // milliseconds in which the user may have been asked
	Stated         bool      `json:"stated"`         // the turn's duration is on record
	WaitUnclear    bool      `json:"dim"`            // more calls of the turn may have waited than WaitCandidates has
	Calls          []pending `json:"calls,omitempty"`
	WaitCandidates []kept    `json:"slow,omitempty"`
	Agents         []kept    `json:"agents,omitempty"`
	Back           []kept    `json:"back,omitempty"`
	Links          []kept    `json:"links,omitempty"`

	out []Moment
}

// kept is a moment that may still change.
type kept struct {
	Line   int64  `json:"l"`
	Part   int    `json:"p"` // -1: a call that is too short for a moment of its own
	Key    string `json:"k,omitempty"`
	Moment Moment `json:"m"`
}

// pending is a tool call without a result.
type pending struct {
	ID    string    `json:"id"`
	Tool  string    `json:"tool"`
	Label string    `json:"label"`
	At    time.Time `json:"at,omitzero"`
	Free  bool      `json:"free,omitempty"` // nobody is asked before it
}

// errState is for bytes that no Builder of this version encoded.
var errState = errors.New("not the state of a timeline")

// MarshalBinary encodes the state, so that another Builder can continue from it. The error is always nil.
func (b *TimelineBuilder) MarshalBinary() ([]byte, error) { return json.Marshal(&b.state) }

// UnmarshalBinary replaces the state. After an error the Builder is at the beginning of a transcript.
func (b *TimelineBuilder) UnmarshalBinary(data []byte) error {
	b.state = state{}
	if err := json.Unmarshal(data, &b.state); err != nil {
		b.state = state{}
		return fmt.Errorf("%w: %w", errState, err)
	}
	return nil
}

// Add returns the moments that a record makes or changes. events are those that session.Fold.Add returned for the
// same record. The slice is valid until the next call.
func (b *TimelineBuilder) Add(line int64, r *transcript.Record, events []Event) []Moment {
	b.out = b.out[:0]
	if line != b.Line {
		b.Line, b.Part = line, 0
	}
	if r.PermissionMode != "" {
		b.Mode = r.PermissionMode
	}
	for i := range events {
		b.event(r, &events[i])
	}
	return b.out
}

func (b *TimelineBuilder) event(r *transcript.Record, e *Event) {
	switch e.Kind {
	case PromptEvent:
		b.said(e, TimelinePrompt)
	case MessageEvent:
		b.said(e, TimelineMessage)
	case ReplyEvent:
		b.add(e, reply, e.Text)
	case TaskEvent:
		b.begin(b.add(e, TimelineTask, e.Text))
	case CommandEvent:
		kind := TimelineCommand
		if e.Text == "/clear" {
			kind = timelineClear
		}
		b.add(e, kind, e.Text)
	case CompactionEvent:
		b.compaction(e)
	case ClearEvent:
		b.add(e, timelineClear, "the context was cleared, and an accepted plan goes on")
	case RewindEvent, RewindUndoneEvent:
		b.rewind(e)
	case InterruptEvent:
		b.add(e, interrupt, "interrupted by the user")
	case ErrorEvent:
		b.add(e, ToolError, e.Text)
	case ToolStartEvent:
		b.call(r, e)
	case ToolCompleteEvent:
		b.result(r, e)
		b.commit(r, e)
	case AgentEvent:
		b.agent(e)
	case LinkEvent:
		b.Links = bounded(append(b.Links, *keep(b.add(e, TimelineDocument, "linked "+e.Path), e.Path)), maxBack)
	case RefusedLinkEvent:
		b.refusedLink(e)
	case UnlinkEvent:
		b.add(e, TimelineDocument, "unlinked "+e.Path)
	case TurnEvent:
		b.endTurn(r, e)
	case AnswerEvent, TitleEvent, UsageEvent, ContextEvent, FileEvent:
	}
}

// add makes a moment.
func (b *TimelineBuilder) add(e *Event, kind MomentKind, text string) *Moment {
	b.out = append(b.out, Moment{
		Line: b.Line, Part: b.Part, Kind: kind, At: e.Time, Text: transcript.OneLine(text, MaxMomentText), Turn: b.Turn,
	})
	b.Part++
	return &b.out[len(b.out)-1]
}

// begin makes a moment the one that has the turn's duration.
func (b *TimelineBuilder) begin(m *Moment) {
	m.Running = true
	b.Open = keep(m, "")
	b.Known, b.Asked, b.WaitCandidates, b.WaitUnclear, b.Stated = 0, 0, nil, false, false
}

// keep remembers a moment that may change.
func keep(m *Moment, key string) *kept {
	return &kept{Line: m.Line, Part: m.Part, Key: key, Moment: *m}
}

// again emits a moment that has changed.
func (b *TimelineBuilder) again(k *kept) {
	m := k.Moment
	m.Line, m.Part = k.Line, k.Part
	for i := range b.out {
		if b.out[i].Line == m.Line && b.out[i].Part == m.Part {
			b.out[i] = m
			return
		}
	}
	b.out = append(b.out, m)
}

// said makes the moment of a prompt or a message. It begins a turn, unless it came in the middle of one.
func (b *TimelineBuilder) said(e *Event, kind MomentKind) {
	text := e.Text
	if text == "" && kind == TimelinePrompt {
		text = transcript.ImageOnly
	}
	begins := !e.Queued || b.Open == nil || !b.Open.Moment.Running
	if begins {
		b.Turn++
	}
	m := b.add(e, kind, text)
	m.From, m.Queued = transcript.Cut(e.From, maxLabel), !begins
	if begins {
		b.begin(m)
	}
}

func (b *TimelineBuilder) compaction(e *Event) {
	text := "compacted"
	if e.Compact == nil {
		b.add(e, compaction, text)
		return
	}
	if e.Compact.Trigger != "" {
		text = e.Compact.Trigger
	}
	m := b.add(e, compaction, text)
	m.Before, m.After = e.Compact.Pre, e.Compact.Post
	if took := e.Compact.Took; took > 0 {
		m.Took = took.Milliseconds()
		if !m.At.IsZero() {
			m.At = m.At.Add(-took)
		}
	}
}

// commit makes the moment of a commit that a call made, as its result says.
func (b *TimelineBuilder) commit(r *transcript.Record, e *Event) {
	if !bytes.Contains(r.ToolResult, []byte(`"gitOperation"`)) { // results are long
		return
	}
	made := transcript.Member(transcript.Member(r.ToolResult, "gitOperation"), "commit")
	if name := transcript.StringField(made, "sha"); name != "" && e.Success {
		b.add(e, TimelineCommit, name)
	}
}

// rewind makes a moment, or takes it back when the abandoned branch goes on.
func (b *TimelineBuilder) rewind(e *Event) {
	if e.Rewind == nil {
		return
	}
	key := strconv.FormatInt(e.Rewind.Number, 10)
	if e.Kind == RewindEvent {
		text := "back to the beginning"
		if e.Rewind.ToLine >= 0 {
			text = "back to line " + strconv.FormatInt(e.Rewind.ToLine+1, 10) // people count from 1
		}
		b.Back = bounded(append(b.Back, *keep(b.add(e, rewind, text), key)), maxBack)
		return
	}
	for i := range b.Back {
		if b.Back[i].Key == key {
			b.Back[i].Moment.Gone = true
			b.again(&b.Back[i])
			b.Back = slices.Delete(b.Back, i, i+1)
			return
		}
	}
}

// refusedLink corrects the moment of a link that was refused after the model's tool had said that it is one.
func (b *TimelineBuilder) refusedLink(e *Event) {
	for i := range slices.Backward(b.Links) {
		k := &b.Links[i]
		if k.Key == e.Text || strings.HasPrefix(e.Text, k.Key+": ") {
			k.Moment.Text = transcript.OneLine("not linked "+e.Text, MaxMomentText)
			b.again(k)
			b.Links = slices.Delete(b.Links, i, i+1)
			return
		}
	}
}

// agent keeps the moment of an agent in step with what is known of it.
func (b *TimelineBuilder) agent(e *Event) {
	a := e.Agent
	i := slices.IndexFunc(b.Agents, func(k kept) bool { return k.Key == a.ToolID })
	if i < 0 {
		m := b.add(e, TimelineAgent, a.Description)
		m.Running = true
		b.Agents = bounded(append(b.Agents, *keep(m, a.ToolID)), maxOpenAgents)
		i = len(b.Agents) - 1
	}
	k := &b.Agents[i]
	m := &k.Moment
	m.Tool, m.Agent = transcript.Cut(a.Type, maxLabel), transcript.Cut(a.ID, maxLabel)
	if m.Text == "" {
		m.Text = transcript.OneLine(a.Description, MaxMomentText)
	}
	if a.Done && m.Running {
		m.Running = false
		if !e.Time.IsZero() && !m.At.IsZero() {
			m.setTook(e.Time.Sub(m.At), 0)
			m.MayWait = !b.free() // an agent's tools ask for permission too
		}
	}
	b.again(k)
}

// bounded removes the oldest of a list that is too long.
func bounded[T any](list []T, most int) []T {
	if len(list) > most {
		return slices.Delete(list, 0, len(list)-most)
	}
	return list
}

// TimelineReader makes the timeline of a transcript from its lines. The zero value has no lines. Its memory grows with
// the number of moments, not with the transcript. For one goroutine.
type TimelineReader struct {
	fold    Fold
	builder TimelineBuilder
	moments map[place]Moment
}

// place identifies a moment.
type place struct {
	line int64
	part int
}

// Line adds a line (0-based), without its newline. What is no record is passed over.
func (t *TimelineReader) Line(line int64, raw []byte) {
	for _, r := range transcript.Records(raw) {
		t.record(line, r)
	}
}

func (t *TimelineReader) record(line int64, r transcript.Record) {
	if t.moments == nil {
		t.moments = map[place]Moment{}
	}
	for _, m := range t.builder.Add(line, &r, t.fold.Add(line, r)) {
		if m.Gone {
			delete(t.moments, place{m.Line, m.Part})
			continue
		}
		t.moments[place{m.Line, m.Part}] = m
	}
}

// Moments returns the moments so far, in the order of their lines.
func (t *TimelineReader) Moments() []Moment {
	out := make([]Moment, 0, len(t.moments))
	for _, m := range t.moments {
		out = append(out, m)
	}
	slices.SortFunc(out, CompareMoments)
	return out
}

// CompareMoments orders moments as their transcript has them.
func CompareMoments(a, b Moment) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Part, b.Part))
}
