package session

import (
	"time"
)

// MomentKind is what happened at a Moment.
type MomentKind string

// The kinds of moments. Checkpoint is not derived from a transcript: the store of checkpoints adds them.
const (
	TimelinePrompt     MomentKind = "prompt"     // the person wrote a prompt; it took as long as its turn
	TimelineMessage    MomentKind = "message"    // of another session, an agent, a schedule, a background task; the same
	reply              MomentKind = "reply"      // the person answered a question, or said why a tool must not run
	TimelineTask       MomentKind = "task"       // an agent received its task; the same
	TimelineCommand    MomentKind = "command"    // a built-in command, such as /model
	compaction         MomentKind = "compaction" // the conversation was compacted
	timelineClear      MomentKind = "clear"      // the context was cleared
	rewind             MomentKind = "rewind"     // the user went back to an earlier message
	interrupt          MomentKind = "interrupt"  // the user interrupted the model
	ToolRefusal        MomentKind = "refusal"    // the user did not let the model use a tool
	TimelineDocument   MomentKind = "document"   // a document was linked or unlinked
	TimelineCommit     MomentKind = "commit"     // a command made a commit, whose hash Text begins with
	TimelineAgent      MomentKind = "agent"      // an agent was started; it took until it ended
	TimelineTool       MomentKind = "tool"       // a tool call of at least Long
	ToolError          MomentKind = "error"      // a tool failed, or the API refused
	TimelineCheckpoint MomentKind = "checkpoint"
)

// MomentKinds returns all kinds, in the order in which help texts name them.
func MomentKinds() []MomentKind {
	return []MomentKind{TimelinePrompt, TimelineMessage, reply, TimelineTask, TimelineCommand, compaction,
		timelineClear, rewind,
		interrupt, ToolRefusal, TimelineCheckpoint, TimelineDocument, TimelineCommit, TimelineAgent, TimelineTool,
		ToolError}
}

const (
	// maxLong is how long a successful tool call takes at least to be a moment of its own.
	maxLong = 10 * time.Second
	// MaxMomentText limits the text of a moment, in characters.
	MaxMomentText = 300
)

// Moment is one thing that happened. Line and Part identify it in its transcript; a moment that is derived again,
// because more is known of it, has the same.
type Moment struct {
	Line int64      `json:"-"` // 0-based, on which it is recorded
	Part int        `json:"-"` // of several on one line, from 0
	Kind MomentKind `json:"kind"`
	At   time.Time  `json:"at,omitzero"`    // when it began; zero when no record tells
	Text string     `json:"text"`           // one line
	From string     `json:"from,omitempty"` // who sent a message, or the channel of a prompt: as transcript.Speech has it
	Tool string     `json:"tool,omitempty"`
	// Turn is the turn in which it happened, from 1; 0 before the first prompt.
	Turn int64 `json:"turn"`
	// Took is how long it took, without Waited, in milliseconds; 0 when that is not known or nothing.
	Took int64 `json:"duration_ms,omitempty"`
	// Waited is how long Claude Code waited for the user's permission or answer meanwhile, in milliseconds, as far as
	// the records tell.
	Waited int64 `json:"waited_ms,omitempty"`
	// MayWait says that Took may contain more of such waiting: the records do not tell.
	MayWait bool   `json:"may_include_waiting,omitempty"`
	Running bool   `json:"running,omitempty"`       // not ended, as far as the transcript says
	Queued  bool   `json:"queued,omitempty"`        // a prompt or a message that came while the model was working
	Agent   string `json:"agent,omitempty"`         // id of the agent's transcript
	Before  int64  `json:"tokens_before,omitempty"` // of a compaction
	After   int64  `json:"tokens_after,omitempty"`
	Gone    bool   `json:"-"` // it did not happen after all: who keeps moments removes it
}

// setTook splits the time that something took into working and known waiting.
func (m *Moment) setTook(elapsed, waited time.Duration) {
	waited = min(max(waited, 0), max(elapsed, 0))
	m.Took, m.Waited = (max(elapsed, 0) - waited).Milliseconds(), waited.Milliseconds()
}

// elapsed returns the time with waiting.
func (m *Moment) elapsed() time.Duration { return time.Duration(m.Took+m.Waited) * time.Millisecond }
