package session

import (
	"strings"
	"time"

	"github.com/ccship/ccship/transcript"
)

// Fold folds the records of one transcript, in file order, into what they mean together. The zero value is a
// session without records. It is pure and bounded: its memory does not grow with the transcript beyond about 300 KiB,
// its encoded state not beyond about 64 KiB; a usual session's takes a tenth of that.
type Fold struct {
	// Budget is what is known beside the records. It is not part of the encoded state.
	Budget BudgetOptions
	// InputLimit and OutputLimit take the place of MaxInput and MaxOutput; 0 does not. Nor are they part of the state.
	InputLimit, OutputLimit int

	sum           Summary // what is counted and remembered; the rest of it is worked out when it is asked for
	titles        [transcript.CustomTitle + 1]string
	summaries     []looseSummary
	ownership     ownership
	branches      branches
	answers       recentMap[counted] // by message id
	calls         recentMap[call]    // by tool use id
	files         []fileCall         // calls on files with one half missing
	models        []modelState       // by first use
	model         string
	newest        uint64   // the message id of the newest answer
	queue         []queued // prompts that wait for their turn
	removed       []queued // taken out of the queue, and not seen anywhere else yet
	queuedPrompts []uint64 // prompts of this turn that came from the queue
	queueTime     time.Time
	turn          turnState
	events        []Event
}

// Bounds of what a Fold remembers.
const (
	maxNodes     = 2048
	maxAnswers   = 128
	maxCalls     = 256
	maxModels    = 16
	maxQueue     = 16
	maxQueueText = 1 << 10 // characters
	maxAgents    = 64
	maxFiles     = 20
	maxSummaries = 8
	maxPrompt    = 300  // characters of FirstPrompt and LastPrompt
	maxName      = 1024 // bytes of what should be a name or a path
)

// looseSummary titles the session that a leaf is in, if it turns up.
type looseSummary struct {
	leaf  uint64
	title string
}

// call is what is known of a tool call.
type call struct {
	started, done, agent, failed bool
}

// counted is what was counted for an answer.
type counted struct {
	usage transcript.Usage
	main  bool // not a sidechain's copy
}

// modelState is what was seen of one model.
type modelState struct {
	name           string
	most, boundary int64 // tokens in use; the least at an automatic compaction
}

// queued is a prompt typed while the model was working.
type queued struct {
	text string
	line int64
	time time.Time
}

// turnState is the turn that goes on, or was the last.
type turnState struct {
	Turn
	open           bool // work goes on
	active         bool // something happened in it
	durationStated bool // the program told the duration
	from           time.Time
	to             time.Time
	line           int64 // of its last record, as is uuid
	uuid           string
}

// Add takes the record on a line (0-based; several records of a glued line have one number) and says what it brought.
// Copies of records that were added before bring nothing. The slice is valid until the next Add; what its elements
// point to stays.
func (s *Fold) Add(line int64, r transcript.Record) []Event {
	s.events = s.events[:0]
	s.bounds()
	clip(&r)
	if r.UUID == "" && r.Message == nil {
		s.metadata(line, &r)
		return s.events
	}
	g := treeRecordOf(line, &r)
	chain := s.ownership.inTree(&r)
	if chain && s.branches.known(&g) {
		return s.events
	}
	s.envelope(&r)
	if !s.ownership.includes(&r) {
		s.sidechain(line, &r)
		return s.events
	}
	if g.flags&isPrompt == 0 && (r.Message != nil || r.Type == "system") {
		s.turn.at(line, &r)
	}
	if u := usageOf(&r); u != nil {
		g.context = uint32(min(u.Context(), 1<<31))
	}
	if chain {
		s.rewinds(&g, &r)
	}
	switch r.Type {
	case "user":
		s.user(line, &r, &g)
	case "assistant":
		s.assistant(line, &r)
	case "system":
		s.system(line, &r)
	case "attachment":
		if g.flags&isPrompt != 0 {
			s.prompt(line, &r, g.text, true)
		}
	}
	s.updateLeaf(&r)
	return s.events
}

func (s *Fold) bounds() {
	s.branches.bound, s.answers.bound, s.calls.bound = maxNodes, maxAnswers, maxCalls
}

// clip cuts what should be names and paths, so that no record can make the state large.
func clip(r *transcript.Record) {
	for _, name := range []*string{
		&r.UUID, &r.ParentUUID, &r.SessionID, &r.AgentID, &r.Cwd, &r.Branch, &r.Version, &r.Entrypoint, &r.PermissionMode, &r.Title,
	} {
		if len(*name) > maxName {
			*name = (*name)[:maxName]
		}
	}
}

// usageOf is what the record tells of tokens that count; nil if nothing.
func usageOf(r *transcript.Record) *transcript.Usage {
	if r.Type != "assistant" || r.Message == nil || r.APIError || r.Message.Synthetic() {
		return nil
	}
	return r.Message.Usage
}

// event appends an event of a record.
func (s *Fold) event(kind EventKind, line int64, r *transcript.Record) *Event {
	s.events = append(s.events, Event{Kind: kind, Line: line, UUID: r.UUID, SessionID: r.SessionID, Time: r.Time})
	return &s.events[len(s.events)-1]
}

// envelope takes what records of every type have.
func (s *Fold) envelope(r *transcript.Record) {
	if !r.Time.IsZero() {
		if s.sum.Started.IsZero() || r.Time.Before(s.sum.Started) {
			s.sum.Started = r.Time
		}
		if r.Time.After(s.sum.Ended) {
			s.sum.Ended = r.Time
		}
	}
	if r.Cwd != "" && s.sum.FirstCwd == "" {
		s.sum.FirstCwd = r.Cwd
	}
	for _, member := range []struct {
		to   *string
		from string
	}{
		{&s.sum.SessionID, r.SessionID}, {&s.sum.Cwd, r.Cwd}, {&s.sum.Branch, r.Branch}, {&s.sum.Version, r.Version},
		{&s.sum.Entrypoint, r.Entrypoint}, {&s.sum.PermissionMode, r.PermissionMode},
	} {
		if member.from != "" && *member.to != member.from {
			*member.to = clone(member.from)
		}
	}
	if r.Sidechain && s.sum.AgentID == "" && s.ownership.agent {
		s.sum.AgentID = clone(r.AgentID)
	}
	s.lineage(r.Lineage)
}

func (s *Fold) lineage(l *transcript.Lineage) {
	if l == nil {
		return
	}
	if l.ForkedFrom != "" && s.sum.ForkedFrom == "" {
		s.sum.ForkedFrom = clone(l.ForkedFrom)
	}
	if l.ContinuedIn != "" {
		s.sum.ContinuedIn = clone(l.ContinuedIn)
	}
}

// clone is a copy that does not keep the line's other texts alive.
func clone(s string) string { return strings.Clone(s[:min(len(s), maxName)]) }

// updateLeaf remembers the live end of the conversation.
func (s *Fold) updateLeaf(r *transcript.Record) {
	if r.Message != nil && !r.Meta && r.TeamName == "" && r.UUID != "" {
		s.sum.Leaf = r.UUID
	}
}

// rewinds puts the record into the tree, and tells what that shows.
func (s *Fold) rewinds(g *treeRecord, r *transcript.Record) {
	s.looseSummaries(g, r)
	rewind, undone := s.branches.add(*g)
	if undone != nil {
		s.sum.Rewinds--
		s.event(RewindUndoneEvent, g.line, r).Rewind = undone
	}
	if rewind == nil {
		return
	}
	s.closeTurn()
	s.sum.Rewinds++
	s.event(RewindEvent, g.line, r).Rewind = rewind
	var tokens int64
	if n := s.branches.find(g.id); n != nil {
		tokens = int64(n.context)
	}
	s.setContext(g.line, r, tokens, RewindCause)
}

// sidechain takes a sidechain's record that lies in a main transcript: it costs tokens, and is no part of the
// conversation.
func (s *Fold) sidechain(line int64, r *transcript.Record) {
	if u := usageOf(r); u != nil {
		s.countUsage(line, r, *u)
	}
}
