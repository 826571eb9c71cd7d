package session

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/transcript"
)

// Fold derives from the records of one transcript, added in file order, what they mean together. The zero value is a
// session without records. It is pure and bounded: whatever the transcript's length, it uses at most about 300 KiB of
// memory, and its encoded state is at most about 64 KiB; an ordinary session's is a tenth of that.
type Fold struct {
	// Budget is what is known from outside the transcript. It is not part of the encoded state.
	Budget BudgetOptions
	// InputLimit and OutputLimit replace transcript.MaxInput and MaxOutput unless they are 0. They are not part of the
	// encoded state either.
	InputLimit, OutputLimit int

	sum           Summary // counters and newest values; Summary adds the fields that are computed on demand
	titles        [transcript.CustomTitle + 1]string
	summaries     []looseSummary
	ownership     ownership
	branches      branches
	answers       recentMap[counted] // by message id
	calls         recentMap[call]    // by tool use id
	files         []fileCall         // file tool calls of which only the call or only the result was seen
	models        []modelState       // in order of first use
	model         string
	asked         string   // the model that was asked for last, as AskedModel has it
	newest        uint64   // message id of the newest answer
	queue         []string // what waits in the queue
	dequeued      bool     // one of the queue was taken, and its record follows
	queuedPrompts []uint64 // hashes of this turn's prompts that came from the queue
	left          []uint64 // hashes of what left the queue in this turn, and of which a record is to follow
	guessed       uint64   // hash of the last prompt that left the queue by a record that does not say what left
	queueTime     time.Time
	turn          turnState
	clears        []int64 // lines before which the context was cleared, the newest ones
	events        []Event
	repeated      bool
}

// Limits on what a Fold remembers.
const (
	maxNodes     = 2048
	maxAnswers   = 128
	maxCalls     = 256
	maxModels    = 16
	maxQueue     = 16
	minQueueText = 1 << 10  // characters that are kept of every prompt in the queue
	maxQueueText = 16 << 10 // characters that are kept of all of them, unless there are many
	maxAgents    = 64
	maxFiles     = 20
	maxSummaries = 8
	maxPrompt    = 300  // characters of FirstPrompt
	maxName      = 1024 // bytes of a name or a path
)

// looseSummary is the title of the session that contains a leaf, kept until that leaf turns up.
type looseSummary struct {
	leaf  uint64
	title string
}

// call is the state of a tool call.
type call struct {
	started, done, agent, failed bool
}

// counted is the usage already counted for an answer.
type counted struct {
	usage transcript.Usage
	main  bool // the main chain's line, not a sidechain's copy
}

// modelState is what has been observed of one model.
type modelState struct {
	name           string
	most, boundary int64 // most tokens in use; fewest tokens at an automatic compaction
	stated         int64 // the window that was asked for; 0: none
}

// turnState is the current turn, or the last one.
type turnState struct {
	Turn
	open           bool // the model is still working
	active         bool // something has happened in it
	durationStated bool // Claude Code recorded the duration
	result         bool // it counts: the model has done something in it, or it failed or was interrupted
	from           time.Time
	to             time.Time
	line           int64 // of its last record, like uuid
	uuid           string
}

// Add folds the record on a line (0-based; several records recovered from one damaged line share its number) and
// returns the events it causes. A copy of a record that was added before causes none. The slice is valid until the next
// call; what its elements point to stays valid.
func (s *Fold) Add(line int64, r transcript.Record) []Event {
	s.events, s.repeated = s.events[:0], false
	s.bounds()
	clip(&r)
	if r.UUID == "" && r.Message == nil {
		s.metadata(line, &r)
		return s.events
	}
	g := treeRecordOf(line, &r)
	chain := s.ownership.inTree(&r)
	if chain && s.branches.known(&g) {
		s.repeated = s.branches.find(g.id) != nil
		return s.events
	}
	s.envelope(&r)
	if !s.ownership.includes(&r) {
		if usageOf(&r) != nil { // a sidechain's tokens count, but it is not part of the conversation
			s.countAnswers(line, &r)
		}
		return s.events
	}
	if g.said.Speaker == transcript.NoSpeaker && (r.Message != nil || r.Type == "system") {
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
		s.spoken(line, &r, g.said)
		s.refusedLinks(line, &r)
	case "progress":
		s.agentAnswer(line, &r)
	}
	if r.Message != nil && !r.Meta && r.TeamName == "" && r.UUID != "" {
		s.sum.Leaf = r.UUID
	}
	return s.events
}

// Repeated reports whether the record that was added last is in the tree since before: a copy of one that was added.
func (s *Fold) Repeated() bool { return s.repeated }

// Rewinds returns the rewinds that were not undone, at most the newest 64, oldest first.
func (s *Fold) Rewinds() []Rewind { return slices.Clone(s.branches.rewinds) }

// Clears returns the lines before which the context was cleared, at most the newest 64, oldest first.
func (s *Fold) Clears() []int64 { return slices.Clone(s.clears) }

func (s *Fold) bounds() {
	s.branches.bound, s.answers.bound, s.calls.bound = maxNodes, maxAnswers, maxCalls
}

// clip shortens names and paths, so that no record can inflate the state.
func clip(r *transcript.Record) {
	for _, name := range []*string{
		&r.UUID, &r.ParentUUID, &r.SessionID, &r.AgentID, &r.Cwd, &r.Branch, &r.Version, &r.Entrypoint,
		&r.PermissionMode, &r.Title,
	} {
		if len(*name) > maxName {
			*name = (*name)[:maxName]
		}
	}
}

// usageOf returns the token usage of a record that counts, or nil.
func usageOf(r *transcript.Record) *transcript.Usage {
	if r.Type != "assistant" || r.Message == nil || r.APIError || r.Message.Synthetic() {
		return nil
	}
	return r.Message.Usage
}

// event appends an event caused by a record.
func (s *Fold) event(kind EventKind, line int64, r *transcript.Record) *Event {
	s.events = append(s.events, Event{Kind: kind, Line: line, UUID: r.UUID, SessionID: r.SessionID, Time: r.Time})
	return &s.events[len(s.events)-1]
}

// envelope takes over the members that records of every type have.
func (s *Fold) envelope(r *transcript.Record) {
	if !r.Time.IsZero() {
		if s.sum.Started.IsZero() || r.Time.Before(s.sum.Started) {
			s.sum.Started = r.Time
		}
		if r.Time.After(s.sum.Ended) {
			s.sum.Ended = r.Time
		}
	}
	if r.TeamAgent != "" && s.sum.Labels.AgentName == "" {
		s.sum.Labels.AgentName = clone(r.TeamAgent)
	}
	if r.AskedModel != "" {
		s.asked = clone(r.AskedModel)
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
}

// clone copies s, so that it does not keep the rest of the line in memory.
func clone(s string) string { return strings.Clone(s[:min(len(s), maxName)]) }

// rewinds adds the record to the tree and emits what it reveals: a rewind, one that was none, or a cleared context.
func (s *Fold) rewinds(g *treeRecord, r *transcript.Record) {
	s.looseSummaries(g, r)
	c := s.branches.add(*g)
	if c.undone != nil {
		s.sum.Rewinds--
		s.event(RewindUndoneEvent, g.line, r).Rewind = c.undone
	}
	if c.cleared {
		s.closeTurn()
		if len(s.clears) == maxRewinds {
			s.clears = append(s.clears[:0], s.clears[1:]...)
		}
		s.clears = append(s.clears, g.line)
		s.event(ClearEvent, g.line, r)
		s.setContext(g.line, r, 0, ClearCause)
	}
	if c.rewind == nil {
		return
	}
	s.closeTurn()
	s.sum.Rewinds++
	s.event(RewindEvent, g.line, r).Rewind = c.rewind
	var tokens int64
	if n := s.branches.find(g.id); n != nil {
		tokens = int64(n.context)
	}
	s.setContext(g.line, r, tokens, RewindCause)
}

// agentAnswer reports the tokens of an agent's answer that a progress record repeats. They are not added to this
// transcript's: the agent's own transcript may have them too.
func (s *Fold) agentAnswer(line int64, r *transcript.Record) {
	for sample := range r.Answers() {
		sample.Line = line
		if sample.Time.IsZero() {
			sample.Time = r.Time
		}
		s.event(UsageEvent, line, r).Usage = &sample
	}
}

// metadata handles records without a uuid: titles, labels, the prompt queue. Claude Code repeats them often.
func (s *Fold) metadata(line int64, r *transcript.Record) {
	if s.sum.SessionID == "" && r.Type != "file-history-snapshot" {
		s.sum.SessionID = clone(r.SessionID)
	}
	s.lineage(r.Lineage)
	switch {
	case r.Type == "queue-operation":
		s.queueOperation(line, r)
	case r.TitleKind == transcript.SummaryTitle:
		s.summaryTitle(line, r)
	case r.TitleKind != transcript.NoTitle:
		s.title(line, r, r.TitleKind, r.Title)
	case r.Labels != nil:
		s.labels(r.Labels)
	case r.Type == "permission-mode" && r.PermissionMode != "":
		s.sum.PermissionMode = clone(r.PermissionMode)
	}
}

func (s *Fold) labels(l *transcript.Labels) {
	to := &s.sum.Labels
	to.Tag = clone(cmp.Or(l.Tag, to.Tag))
	to.AgentName = clone(cmp.Or(l.AgentName, to.AgentName))
	to.PRURL = clone(cmp.Or(l.PRURL, to.PRURL))
	if l.PRNumber != 0 {
		to.PRNumber = l.PRNumber
	}
}

// title stores a title and emits an event if the session's title changes.
func (s *Fold) title(line int64, r *transcript.Record, kind transcript.TitleKind, title string) {
	before, _ := s.titled()
	s.titles[kind] = transcript.OneLine(title, maxPrompt)
	if now, _ := s.titled(); now != before {
		s.event(TitleEvent, line, r).Text = now
	}
}

func (s *Fold) titled() (string, transcript.TitleKind) {
	for kind := transcript.CustomTitle; kind > transcript.NoTitle; kind-- {
		if s.titles[kind] != "" {
			return s.titles[kind], kind
		}
	}
	return "", transcript.NoTitle
}

// summaryTitle stores the title of the session that contains a leaf, which may be another session than this one.
func (s *Fold) summaryTitle(line int64, r *transcript.Record) {
	id := hash(r.LeafUUID)
	if s.branches.find(id) != nil {
		s.title(line, r, transcript.SummaryTitle, r.Title)
		return
	}
	if len(s.summaries) == maxSummaries {
		s.summaries = slices.Delete(s.summaries, 0, 1)
	}
	s.summaries = append(s.summaries, looseSummary{id, transcript.OneLine(r.Title, maxPrompt)})
}

// looseSummaries checks whether the record is a leaf that an earlier summary named.
func (s *Fold) looseSummaries(g *treeRecord, r *transcript.Record) {
	for i, l := range s.summaries {
		if l.leaf == g.id {
			s.summaries = slices.Delete(s.summaries, i, i+1)
			s.title(g.line, r, transcript.SummaryTitle, l.title)
			return
		}
	}
}

// versionBelow reports whether a version is lower than another; false if it cannot be parsed.
func versionBelow(version string, than ...int64) bool {
	var n [3]int64
	if !versionNumbers(version, &n) {
		return false
	}
	return slices.Compare(n[:], than) < 0
}

func versionNumbers(version string, n *[3]int64) bool {
	part := 0
	for i := 0; i < len(version); i++ {
		switch c := version[i]; {
		case c-'0' <= 9 && n[part] < 1<<40:
			n[part] = n[part]*10 + int64(c-'0')
		case c == '.' && part < 2:
			part++
		default:
			return part == 2
		}
	}
	return part == 2
}
