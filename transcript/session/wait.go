package session

import (
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/transcript"
)

// A record of a tool call has the time at which the model asked for it, and the time of its result. Between the two,
// the user may have been asked for permission. What the records tell:
//
//   - A turn_duration record has the time of its turn without such waits. The time between prompt and record, less
//     that, is what the turn waited, but no longer than its calls in which the user may have been asked: the rest is
//     nobody's wait, a schedule's hours or a usage limit. When that is nothing, none of its calls waited. When one call
//     was long enough for it, and the other calls together took less than a twentieth of it, that call waited.
//   - AskUserQuestion and ExitPlanMode do nothing but wait for the user, and so does a call that the user refuses.
//   - A few results state how long the tool ran.
//   - Before some calls nobody is asked: transcript.MayAsk.
//
// Where none of these shows it, MayWait is set.

// tolerance is by how much times of records may differ without meaning.
const tolerance = time.Second

// call remembers a tool call.
func (b *TimelineBuilder) call(r *transcript.Record, e *Event) {
	b.Calls = bounded(append(b.Calls, pending{
		ID: transcript.Cut(e.ToolID, maxLabel), Tool: transcript.Cut(e.ToolName, maxLabel), At: e.Time,
		Label: transcript.ToolSummary(e.ToolName, []byte(e.Input), maxLabel),
		Free:  !transcript.MayAsk(b.Mode, e.ToolName, e.Path, r.Cwd),
	}), maxOpenCalls)
}

// result ends a tool call. It makes a moment of one that was long, failed or was refused.
func (b *TimelineBuilder) result(r *transcript.Record, e *Event) {
	id := transcript.Cut(e.ToolID, maxLabel)
	i := slices.IndexFunc(b.Calls, func(c pending) bool { return c.ID == id })
	var c pending
	if i >= 0 {
		c = b.Calls[i]
		b.Calls = slices.Delete(b.Calls, i, i+1)
	}
	var elapsed time.Duration
	if !c.At.IsZero() && e.Time.After(c.At) {
		elapsed = e.Time.Sub(c.At)
	}
	m := Moment{Line: b.Line, Part: -1, Kind: TimelineTool, At: c.At, Tool: c.Tool, Text: c.Label, Turn: b.Turn}
	if m.At.IsZero() {
		m.At = e.Time
	}
	isAgent := c.Tool == "Task" || c.Tool == "Agent"
	refused := !e.Success && transcript.Rejected(e.Text)
	switch stated := statedTime(r); {
	case refused || c.Tool == "AskUserQuestion" || c.Tool == "ExitPlanMode":
		m.setTook(elapsed, elapsed)
		b.Known += m.Waited
	case stated > 0 && stated <= elapsed && !isAgent:
		m.setTook(elapsed, elapsed-stated)
		b.Known += m.Waited
	default:
		m.setTook(elapsed, 0)
		m.MayWait = elapsed >= tolerance && !c.Free && !b.free()
	}
	b.Asked += m.Waited
	if m.MayWait {
		b.Asked += m.Took
	}
	switch {
	case refused:
		m.Kind = ToolRefusal
	case !e.Success:
		m.Kind, m.Text = ToolError, transcript.OneLine(strings.TrimSpace(e.Text), MaxMomentText)
	case elapsed < maxLong || isAgent:
		b.mayWait(m)
		return
	}
	m.Part = b.Part
	b.Part++
	b.out = append(b.out, m)
	b.mayWait(m)
}

// mayWait remembers a call until its turn ends: then it may be known whether it waited.
func (b *TimelineBuilder) mayWait(m Moment) {
	if !m.MayWait {
		return
	}
	if len(b.WaitCandidates) == maxWaitCandidates {
		b.WaitUnclear = true
		return
	}
	b.WaitCandidates = append(b.WaitCandidates, *keep(&m, ""))
}

// free reports whether nobody is asked before any call.
func (b *TimelineBuilder) free() bool { return !transcript.MayAsk(b.Mode, "", "", "") }

// statedTime returns how long a tool ran by its own result; 0 when that does not say.
func statedTime(r *transcript.Record) time.Duration {
	if len(r.ToolResult) == 0 || r.ToolResult[0] != '{' {
		return 0
	}
	ms := transcript.NumberField(r.ToolResult, "durationMs")
	if ms <= 0 {
		ms = 1000 * transcript.NumberField(r.ToolResult, "durationSeconds")
	}
	if ms < 0 || ms > 1e10 {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

// endTurn gives the moment that began a turn its duration, and its calls theirs.
func (b *TimelineBuilder) endTurn(r *transcript.Record, e *Event) {
	k := b.Open
	if k == nil || e.Time.IsZero() || k.Moment.At.IsZero() {
		return
	}
	m := &k.Moment
	m.Running = false
	elapsed, known := max(e.Time.Sub(m.At), 0), time.Duration(b.Known)*time.Millisecond
	switch {
	case !b.Stated && r.Type == "system" && r.Subtype == "turn_duration" && r.Duration > 0:
		waited := min(max(elapsed-r.Duration, 0), time.Duration(b.Asked)*time.Millisecond)
		m.Took, m.Waited, m.MayWait = r.Duration.Milliseconds(), waited.Milliseconds(), false
		b.Stated = true
		b.settle(waited - known)
	case e.Turn.Unanswered:
		m.Took, m.Waited, m.MayWait = 0, 0, false
	case b.Stated: // what follows is not the user's turn any more
	default:
		m.setTook(elapsed, known)
		m.MayWait = b.WaitUnclear || len(b.WaitCandidates) > 0
	}
	b.again(k)
}

// settle says of the turn's calls how long they waited, from how long they waited together.
func (b *TimelineBuilder) settle(together time.Duration) {
	if b.WaitUnclear {
		return
	}
	if together < tolerance {
		for i := range b.WaitCandidates {
			b.settled(&b.WaitCandidates[i], 0)
		}
		b.WaitCandidates = nil
		return
	}
	longest, others := b.longest()
	if longest != nil && longest.Moment.elapsed()+tolerance >= together && others <= max(tolerance, together/20) {
		b.settled(longest, together)
	}
}

// longest returns the longest call that may have waited, and how long the others took together.
func (b *TimelineBuilder) longest() (longest *kept, others time.Duration) {
	for i := range b.WaitCandidates {
		k := &b.WaitCandidates[i]
		others += k.Moment.elapsed()
		if longest == nil || k.Moment.elapsed() > longest.Moment.elapsed() {
			longest = k
		}
	}
	if longest != nil {
		others -= longest.Moment.elapsed()
	}
	return longest, others
}

// settled emits a call of which it is known now how long it waited.
func (b *TimelineBuilder) settled(k *kept, waited time.Duration) {
	k.Moment.setTook(k.Moment.elapsed(), waited)
	k.Moment.MayWait = false
	if k.Part >= 0 {
		b.again(k)
	}
}
