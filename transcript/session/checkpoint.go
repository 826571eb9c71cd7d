package session

import (
	"slices"
	"strings"
	"time"
	"unicode"
)

// Trigger is the reason for a checkpoint. The values are part of the wire format.
type Trigger string

const (
	Trigger80       Trigger = "auto_80"   // 80 % of the token budget was exceeded
	Trigger90       Trigger = "auto_90"   // 90 % was
	TriggerCompact  Trigger = "compact"   // the conversation was compacted
	TriggerManual   Trigger = "manual"    // requested
	TriggerPreHeavy Trigger = "pre_heavy" // requested before something large
)

// Checkpoint is a session at a moment worth a checkpoint.
type Checkpoint struct {
	Trigger     Trigger
	Line        int64
	UUID        string    // of the record; "" when it has none
	Time        time.Time // of the record; zero when it has none
	Tokens      int64     // in use, for TriggerCompact before the compaction; 0: unknown
	Limit       int64     // Budget.Limit at that moment
	Model       string    // "" before the first answer
	Automatic   bool      // for TriggerCompact: Claude Code compacted by itself and recorded at how many tokens
	ContextHash string    // see CheckpointDetector
	Summary     string    // at most 1 000 characters
	ActiveFiles []string  // files that tools worked on, newest first, at most 20; without control characters
}

// CheckpointDetector finds the moments of a session at which a checkpoint is due. The zero value has seen nothing. It
// is pure and bounded; its encoded state is at most about 24 KiB, an ordinary session's a few.
//
// A threshold fires once per compaction epoch and branch. A compaction, a rewind and an unexplained drop of more than
// 30 % re-arm it, and so does a budget that grew by more than a tenth. Going from below 80 % to 90 % or more also
// counts as exceeding 80 %.
//
// ContextHash is a SHA-256 chain, cut to eight bytes, over the uuids of the records with a prompt, an answer, a tool
// call or its result, in file order, that are part of the conversation as it stands, starting with the last
// compaction's record. Equal conversations have equal hashes, wherever they are stored and however they were read,
// including copies in forks. This may not hold after a rewind of more than 512 records, or when two processes write one
// transcript.
type CheckpointDetector struct {
	epoch          int64 // Context.Epoch
	exceeded       [2]exceeded
	exceededBefore [2]exceeded // before the last rewind
	tokens         int64       // last compared with the budget; 0: not yet in this epoch
	context        int64       // tokens in use, last known; 0: unknown
	twoWriters     bool        // two processes write: changing between branches does not re-arm
	chain          hashChain
	summary        summaryParts
}

// exceeded is the largest budget for which a threshold was exceeded; 0: none.
type exceeded int64

// rearmedBy reports whether exceeding the threshold of this budget fires.
func (p exceeded) rearmedBy(limit int64) bool { return limit > int64(p)+int64(p)/10 }

var thresholds = [2]struct {
	percent int64
	trigger Trigger
}{{80, Trigger80}, {90, Trigger90}}

// BudgetChanged takes in the current budget (s.Budget) before more events are added: thresholds already exceeded under
// it do not fire.
func (m *CheckpointDetector) BudgetChanged(s *Fold) {
	if m.tokens > 0 {
		m.exceed(m.tokens, s.TokenBudget().Limit)
	}
}

// Add takes in the next event; s has already folded its record. Only a fresh record, written just now, can fire a
// threshold; older ones are taken in silently. due reports whether a checkpoint is.
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
		m.summary.cut(e.Rewind)
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

// Current returns a checkpoint of the session as it stands after the record on a line.
func (m *CheckpointDetector) Current(s *Fold, trigger Trigger, line int64) Checkpoint {
	return m.checkpoint(&Event{Line: line, UUID: s.sum.Leaf}, s, trigger, m.context)
}

// contextChanged takes in the tokens in use and returns the trigger of the threshold that they exceed, "" if none.
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
	// a compaction's number is an estimate; the next answer has the real one
	if !c.Known || c.Cause == CompactionCause {
		return ""
	}
	m.tokens = c.Tokens
	return m.exceed(c.Tokens, s.TokenBudget().Limit)
}

// exceed notes which thresholds are exceeded and returns the highest one that fires, "" if none.
func (m *CheckpointDetector) exceed(tokens, limit int64) (fired Trigger) {
	for i, part := range thresholds {
		if limit <= 0 || tokens < percentOf(limit, part.percent) {
			break
		}
		if m.exceeded[i].rearmedBy(limit) {
			fired = part.trigger
		}
		m.exceeded[i] = max(m.exceeded[i], exceeded(limit))
	}
	return fired
}

// percentOf is percent of limit, rounded up.
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
		Trigger: trigger, Line: e.Line, UUID: e.UUID, Time: e.Time, Model: s.model,
		Tokens: tokens, Limit: s.TokenBudget().Limit,
		ContextHash: m.chain.hash(), Summary: m.summary.summary(s), ActiveFiles: files,
	}
}

// printable drops control characters, which a terminal would interpret.
func printable(r rune) rune {
	if unicode.IsControl(r) {
		return -1
	}
	return r
}

// TokenBudget returns the budget of the conversation with the model that answered last.
func (s *Fold) TokenBudget() Budget {
	for i := range s.models {
		if m := &s.models[i]; m.name == s.model && s.model != "" {
			o := s.Budget
			o.Stated = m.stated
			return BudgetFor(m.name, m.most, m.boundary, o)
		}
	}
	return BudgetFor("", 0, 0, s.Budget)
}

const detectorVersion = 1

// MarshalBinary encodes the state so that another CheckpointDetector can continue from it. The error is always nil.
func (m *CheckpointDetector) MarshalBinary() ([]byte, error) {
	return encode(detectorVersion, m.layout), nil
}

// UnmarshalBinary replaces the state. The error wraps ErrState; the detector has then seen nothing.
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
