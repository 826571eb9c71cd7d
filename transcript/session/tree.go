package session

import (
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/transcript"
)

// ownership separates a transcript's own records from the sidechains that older versions of Claude Code wrote between
// them. In an agent's transcript, the sidechain is the transcript.
type ownership struct {
	known, agent bool
}

// includes reports whether a user, assistant, system or attachment record is part of this transcript's conversation.
func (o *ownership) includes(r *transcript.Record) bool {
	if !o.known && r.UUID != "" {
		o.known, o.agent = true, r.Sidechain && r.AgentID != ""
	}
	return r.Sidechain == o.agent
}

// inTree reports whether the record belongs to the transcript's message tree.
func (o *ownership) inTree(r *transcript.Record) bool {
	if r.UUID == "" || !o.includes(r) {
		return false
	}
	switch r.Type {
	case "user", "assistant", "system", "attachment", "progress":
		return true
	}
	return false
}

// treeRecordOf extracts what the tree needs of a record.
func treeRecordOf(line int64, r *transcript.Record) treeRecord {
	g := treeRecord{uuid: r.UUID, parentUUID: r.ParentUUID, session: r.SessionID, message: r.Message != nil}
	g.node = node{id: hash(r.UUID), parent: hash(r.ParentUUID), line: line}
	if s := r.Time.Unix(); s > 0 && s < 1<<32 {
		g.time = uint32(s)
	}
	switch {
	case r.Compact != nil && !r.Compact.Micro:
		g.flags, g.logical = isBoundary, r.LogicalParentUUID
		g.context = uint32(min(r.Compact.Post, 1<<31))
	case r.Type == "assistant" && r.Message != nil && !r.Message.Synthetic() && !r.APIError && hasText(r.Message):
		g.flags = isAnswer
	case r.StartedBy == "clear":
		g.flags = isClear
	case r.Type == "user" || r.Type == "attachment":
		g.said = r.Speech()
		if g.said.Speaker.Human() {
			g.flags, g.promptHash = isPrompt, uint32(hash(g.said.Text))
			if r.Type == "attachment" || r.PromptSource == "queued" {
				g.flags |= isQueued
			}
			if r.FromPlan || strings.HasPrefix(g.said.Text, implementPlan+":\n") { // old versions have the text only
				g.flags |= isPlan
			}
		}
	}
	return g
}

// hasText reports whether a message has a text block that says something.
func hasText(m *transcript.Message) bool {
	blocks := m.RawBlocks()
	for i := range blocks {
		if p := &blocks[i]; p.Kind == transcript.TextBlock && !transcript.OnlySpace(p.Text) {
			return true
		}
	}
	return false
}

// orphan is a record whose parent has not been added. Until it is, the record goes on from the leaf that it came after.
type orphan struct {
	id, parent uint64
	fork       fork // of a prompt; it is decided when the parent is added
}

// adopt makes a record whose parent is not in the tree a child of the leaf.
func (b *branches) adopt(g *treeRecord, l *leaf) {
	if l.id == 0 || g.parent == 0 || b.find(g.parent) != nil {
		return
	}
	if len(b.waiting) == maxWaiting {
		b.waiting = append(b.waiting[:0], b.waiting[1:]...)
	}
	o := orphan{id: g.id, parent: g.parent}
	if g.flags&isPrompt != 0 {
		o.fork = forkOf(g, l)
	}
	b.waiting = append(b.waiting, o)
	g.parent = l.id
}

// isOrphan reports whether a record waits for a parent.
func (b *branches) isOrphan(id, parent uint64) bool {
	return slices.ContainsFunc(b.waiting, func(o orphan) bool { return o.id == id && o.parent == parent })
}

// parentAdded gives the children of a record that came before it to it, and decides their forks.
func (b *branches) parentAdded(id uint64) (rewind *Rewind) {
	var children []orphan
	b.waiting = slices.DeleteFunc(b.waiting, func(o orphan) bool {
		child := o.parent == id && o.id != id
		if child {
			children = append(children, o)
		}
		return child
	})
	for _, o := range children {
		if n := b.find(o.id); n != nil {
			n.parent = id
		}
		if o.fork.prompt.id == 0 {
			continue
		}
		if r, _ := b.decideFork(o.fork); r != nil {
			rewind = r
		}
	}
	return rewind
}

// rootOf returns the first message on the way to a prompt. Its parent is 0, unless that is not in the tree, or the
// parents are a loop.
func (b *branches) rootOf(prompt node) node {
	root := prompt
	b.walkUp(prompt.parent, 0, func(i int32) { root = b.nodes[i] })
	return root
}

// recentMap is a map that drops the key set first when it holds more than bound.
type recentMap[V any] struct {
	bound int
	items []recentEntry[V] // a ring once it is full
	next  int              // the oldest entry then
	at    map[uint64]int
}

type recentEntry[V any] struct {
	key   uint64
	value V
}

func (r *recentMap[V]) get(key uint64) (value V, ok bool) {
	i, ok := r.at[key]
	if !ok {
		return value, false
	}
	return r.items[i].value, true
}

func (r *recentMap[V]) set(key uint64, value V) {
	if i, ok := r.at[key]; ok {
		r.items[i].value = value
		return
	}
	if r.at == nil {
		r.at = map[uint64]int{}
	}
	item := recentEntry[V]{key, value}
	if len(r.items) < r.bound {
		r.at[key] = len(r.items)
		r.items = append(r.items, item)
		return
	}
	delete(r.at, r.items[r.next].key)
	r.at[key] = r.next
	r.items[r.next] = item
	r.next = (r.next + 1) % r.bound
}

// layout encodes the oldest entry first.
func (r *recentMap[V]) layout(c *codec, each func(*V)) {
	ordered := r.items
	if !c.reading && r.next > 0 {
		ordered = append(append(make([]recentEntry[V], 0, len(r.items)), r.items[r.next:]...), r.items[:r.next]...)
	}
	list(c, &ordered, r.bound, func(i *recentEntry[V]) { c.fixed(&i.key); each(&i.value) })
	if !c.reading {
		return
	}
	r.items, r.next, r.at = ordered, 0, make(map[uint64]int, len(ordered))
	for i, item := range r.items {
		r.at[item.key] = i
	}
}

// Summary is an overview of a session.
type Summary struct {
	SessionID           string // from the records; the file name is more reliable
	AgentID             string // "" for a main transcript
	Title               string
	TitleKind           transcript.TitleKind
	FirstPrompt         string   // one line of at most 300 characters; an agent's is its task
	Model               string   // of the newest answer
	Models              []string // in order of first use, at most 16
	Branch, Cwd         string   // newest
	FirstCwd            string
	Version, Entrypoint string
	PermissionMode      string
	Started, Ended      time.Time // earliest and latest time of a record; zero if no record has one

	Prompts     int64 // by a human, including those on abandoned branches
	Answers     int64 // by a model, each counted once
	Messages    int64 // Prompts + Answers
	Tools       int64 // calls, each counted once
	ToolErrors  int64
	APIErrors   int64
	Compactions int64
	Rewinds     int64            // not counting those undone
	Turns       int64            // that have a result: work of the model, an error or an interruption
	Usage       transcript.Usage // of Answers and inline sidechains, each answer counted once

	Context     Context
	Budget      Budget
	ForkedFrom  string // session id
	Labels      transcript.Labels
	Agents      []Agent  // newest last, at most 64
	ActiveFiles []string // files that tools worked on, newest last, at most 20
	Leaf        string   // uuid of the current end of the conversation
}

// Summary returns what the records added so far mean together. The caller owns it.
func (s *Fold) Summary() Summary {
	sum := s.sum
	if sum.Title, sum.TitleKind = s.titled(); sum.TitleKind <= transcript.OtherTitle && sum.Labels.AgentName != "" {
		sum.Title, sum.TitleKind = sum.Labels.AgentName, transcript.AITitle // of a teammate, whom no person prompts
	}
	sum.Model = s.model
	sum.Models = make([]string, 0, len(s.models))
	for _, m := range s.models {
		sum.Models = append(sum.Models, m.name)
	}
	sum.Messages = sum.Prompts + sum.Answers
	sum.Agents, sum.ActiveFiles = slices.Clone(sum.Agents), slices.Clone(sum.ActiveFiles)
	sum.Budget = s.TokenBudget()
	return sum
}

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
