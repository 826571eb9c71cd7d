package session

import (
	"slices"
	"strings"
	"time"
	"unicode"
)

// Trigger says what a checkpoint was made for.
type Trigger string

const (
	Trigger80       Trigger = "auto_80"   // 80 % of the token budget were passed
	Trigger90       Trigger = "auto_90"   // 90 % were
	TriggerCompact  Trigger = "compact"   // the conversation was compacted
	TriggerManual   Trigger = "manual"    // somebody asked for it
	TriggerPreHeavy Trigger = "pre_heavy" // somebody asked for it, before something large
)

// Checkpoint is a moment of a session that is worth a checkpoint.
type Checkpoint struct {
	Trigger     Trigger
	Line        int64
	UUID        string    // of the record; "" when it has none
	Time        time.Time // of the record; zero when it has none
	Tokens      int64     // in use; before the compaction at a TriggerCompact; 0: not known
	Limit       int64     // Budget.Limit then
	Model       string    // "" while none has answered
	Automatic   bool      // at a TriggerCompact: the program did it by itself, and says at how many tokens
	ContextHash string    // see CheckpointDetector
	Summary     string    // at most 1 000 characters
	ActiveFiles []string  // that tools worked on, the newest first, at most 20; without control characters
}

// CheckpointDetector finds the moments of a session at which a checkpoint is due. The zero value has seen nothing. It is pure and
// bounded, and its encoded state takes at most about 24 KiB, a usual session's a few.
//
// A part of the budget is passed once in a compaction epoch of a branch: a compaction, a rewind and a drop of more than
// 30 % let it be passed again, and so does a budget that has become larger by more than a tenth. Who goes from below
// 80 % to 90 % or more has passed 80 % as well.
//
// ContextHash is a SHA-256 chain, cut to eight bytes, over the uuids of the records with a prompt, an answer, a tool
// call or its result, in file order, that are part of the conversation as it stands, from the last compaction's record
// on. Equal conversations have equal ones, wherever they lie and however they were read, copies in forks too; that may
// not hold after a way back of more than 512 records, or when two processes write into one transcript.
type CheckpointDetector struct {
	epoch          int64 // of Context
	exceeded       [2]exceeded
	exceededBefore [2]exceeded // before the last rewind
	tokens         int64       // as they were held against the budget last; 0: not since the epoch began
	context        int64       // as they were told last; 0: not known
	twoWriters     bool        // more than one process writes: going back and forth between branches is nothing new
	chain          hashChain
	summary        summaryParts
}

// exceeded is the largest budget of which a part was passed; 0: it was not.
type exceeded int64

// rearmedBy says whether passing the part of this budget is news.
func (p exceeded) rearmedBy(limit int64) bool { return limit > int64(p)+int64(p)/10 }

var thresholds = [2]struct {
	percent int64
	trigger Trigger
}{{80, Trigger80}, {90, Trigger90}}

// BudgetChanged takes in what is known of the budget now (s.Budget), before more events come: what is passed already, because
// the budget was set or learned since, is no news any more.
func (m *CheckpointDetector) BudgetChanged(s *Fold) {
	if m.tokens > 0 {
		m.exceed(m.tokens, s.TokenBudget().Limit)
	}
}

// Add takes the next event; s has taken its record. fresh says that the record was written just now: only then it can
// be what passes a part of the budget, else that is taken in in silence. due says that a checkpoint is.
func (m *CheckpointDetector) Add(e *Event, s *Fold, fresh bool) (mark Checkpoint, due bool) {
	switch e.Kind {
	case ContextEvent:
		if trigger := m.contextChanged(e.Context, s); trigger != "" && fresh {
			return m.checkpoint(e, s, trigger, e.Context.Tokens), true
		}
	case CompactionEvent:
		mark = m.checkpoint(e, s, TriggerCompact, e.Compact.Pre)
		mark.Automatic = e.Compact.Trigger == "auto" && e.Compact.Pre > 0
		m.chain.restart(e)
		m.summary.restart()
		return mark, true
	case RewindEvent:
		m.chain.cut(e.Rewind)
		m.summary.cut(e.Rewind.ToLine)
	case RewindUndoneEvent:
		m.twoWriters = true
		for i := range m.exceeded {
			m.exceeded[i] = max(m.exceeded[i], m.exceededBefore[i])
		}
	case PromptEvent, TaskEvent, AnswerEvent, ToolStartEvent, ToolCompleteEvent:
		m.chain.add(e)
		m.summary.add(e)
	}
	return Checkpoint{}, false
}

// Current is a mark of the session as it stands, after the record on a line.
func (m *CheckpointDetector) Current(s *Fold, trigger Trigger, line int64) Checkpoint {
	return m.checkpoint(&Event{Line: line, UUID: s.sum.Leaf}, s, trigger, m.context)
}

// contextChanged takes how many tokens are in use, and says which part of the budget that passes; "" none.
func (m *CheckpointDetector) contextChanged(c *Context, s *Fold) Trigger {
	if c.Epoch != m.epoch {
		m.epoch, m.tokens = c.Epoch, 0
		if c.Cause == RewindCause {
			m.exceededBefore = m.exceeded
		}
		if !m.twoWriters || c.Cause == CompactionCause {
			m.exceeded, m.twoWriters = [2]exceeded{}, false
		}
	}
	if m.context = 0; c.Known {
		m.context = c.Tokens
	}
	// What a compaction tells is an estimate: the next answer knows.
	if !c.Known || c.Cause == CompactionCause {
		return ""
	}
	m.tokens = c.Tokens
	return m.exceed(c.Tokens, s.TokenBudget().Limit)
}

// exceed notes which parts of the budget are passed, and names the largest for which that is news.
func (m *CheckpointDetector) exceed(tokens, limit int64) (news Trigger) {
	for i, part := range thresholds {
		if limit <= 0 || tokens < percentOf(limit, part.percent) {
			break
		}
		if m.exceeded[i].rearmedBy(limit) {
			news = part.trigger
		}
		m.exceeded[i] = max(m.exceeded[i], exceeded(limit))
	}
	return news
}

// percentOf is the least number that is so many percent of limit, or more.
func percentOf(limit, percent int64) int64 {
	return limit/100*percent + (limit%100*percent+99)/100
}

func (m *CheckpointDetector) checkpoint(e *Event, s *Fold, trigger Trigger, tokens int64) Checkpoint {
	if tokens <= 0 {
		tokens = m.context
	}
	files := slices.Clone(s.sum.ActiveFiles)
	slices.Reverse(files)
	for i, path := range files {
		files[i] = strings.Map(printable, path)
	}
	return Checkpoint{
		Trigger: trigger, Line: e.Line, UUID: e.UUID, Time: e.Time, Tokens: tokens, Limit: s.TokenBudget().Limit, Model: s.model,
		ContextHash: m.chain.hash(), Summary: m.summary.summary(s), ActiveFiles: files,
	}
}

// printable drops what a terminal would obey.
func printable(r rune) rune {
	if unicode.IsControl(r) {
		return -1
	}
	return r
}

// TokenBudget is how many tokens the conversation can hold, with the model that answered last.
func (s *Fold) TokenBudget() Budget {
	for i := range s.models {
		if m := &s.models[i]; m.name == s.model && s.model != "" {
			return BudgetFor(m.name, m.most, m.boundary, s.Budget)
		}
	}
	return BudgetFor("", 0, 0, s.Budget)
}

const detectorVersion = 1

// MarshalBinary encodes the state, so that another CheckpointDetector can go on where this one is. The error is always nil.
func (m *CheckpointDetector) MarshalBinary() ([]byte, error) {
	return encode(detectorVersion, m.layout), nil
}

// UnmarshalBinary replaces the state. The error wraps ErrState; nothing has been seen then.
func (m *CheckpointDetector) UnmarshalBinary(data []byte) error {
	*m = CheckpointDetector{}
	if err := decode("checkpoint detector", data, detectorVersion, m.layout); err != nil {
		*m = CheckpointDetector{}
		return err
	}
	return nil
}

func (m *CheckpointDetector) layout(c *codec) {
	c.ints(&m.epoch, &m.tokens, &m.context)
	for i := range m.exceeded {
		c.ints((*int64)(&m.exceeded[i]), (*int64)(&m.exceededBefore[i]))
	}
	c.bools(&m.twoWriters)
	m.chain.layout(c)
	m.summary.layout(c)
}
