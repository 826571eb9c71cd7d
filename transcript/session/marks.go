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
	MarkAt80     Trigger = "auto_80"   // 80 % of the token budget were passed
	MarkAt90     Trigger = "auto_90"   // 90 % were
	MarkCompact  Trigger = "compact"   // the conversation was compacted
	MarkManual   Trigger = "manual"    // somebody asked for it
	MarkPreHeavy Trigger = "pre_heavy" // somebody asked for it, before something large
)

// Mark is a moment of a session that is worth a checkpoint.
type Mark struct {
	Trigger     Trigger
	Line        int64
	UUID        string    // of the record; "" when it has none
	Time        time.Time // of the record; zero when it has none
	Tokens      int64     // in use; before the compaction at a MarkCompact; 0: not known
	Limit       int64     // Budget.Limit then
	Model       string    // "" while none has answered
	Automatic   bool      // at a MarkCompact: the program did it by itself, and says at how many tokens
	ContextHash string    // see Marks
	Summary     string    // at most 1 000 characters
	ActiveFiles []string  // that tools worked on, the newest first, at most 20; without control characters
}

// Marks finds the moments of a session at which a checkpoint is due. The zero value has seen nothing. It is pure and
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
type Marks struct {
	epoch   int64 // of Context
	passed  [2]passed
	before  [2]passed // before the last rewind
	tokens  int64     // as they were held against the budget last; 0: not since the epoch began
	context int64     // as they were told last; 0: not known
	writers bool      // more than one process writes: going back and forth between branches is nothing new
	chain   chain
	gist    gist
}

// passed is the largest budget of which a part was passed; 0: it was not.
type passed int64

// counts says whether passing the part of this budget is news.
func (p passed) counts(limit int64) bool { return limit > int64(p)+int64(p)/10 }

var parts = [2]struct {
	percent int64
	trigger Trigger
}{{80, MarkAt80}, {90, MarkAt90}}

// Begin takes in what is known of the budget now (s.Budget), before more events come: what is passed already, because
// the budget was set or learned since, is no news any more.
func (m *Marks) Begin(s *Session) {
	if m.tokens > 0 {
		m.pass(m.tokens, s.TokenBudget().Limit)
	}
}

// Add takes the next event; s has taken its record. fresh says that the record was written just now: only then it can
// be what passes a part of the budget, else that is taken in in silence. due says that a checkpoint is.
func (m *Marks) Add(e *Event, s *Session, fresh bool) (mark Mark, due bool) {
	switch e.Kind {
	case ContextEvent:
		if trigger := m.usage(e.Context, s); trigger != "" && fresh {
			return m.mark(e, s, trigger, e.Context.Tokens), true
		}
	case CompactionEvent:
		mark = m.mark(e, s, MarkCompact, e.Compact.Pre)
		mark.Automatic = e.Compact.Trigger == "auto" && e.Compact.Pre > 0
		m.chain.restart(e)
		m.gist.restart()
		return mark, true
	case RewindEvent:
		m.chain.cut(e.Rewind)
		m.gist.cut(e.Rewind.ToLine)
	case RewindUndoneEvent:
		m.writers = true
		for i := range m.passed {
			m.passed[i] = max(m.passed[i], m.before[i])
		}
	case PromptEvent, TaskEvent, AnswerEvent, ToolStartEvent, ToolCompleteEvent:
		m.chain.add(e)
		m.gist.add(e)
	}
	return Mark{}, false
}

// Now is a mark of the session as it stands, after the record on a line.
func (m *Marks) Now(s *Session, trigger Trigger, line int64) Mark {
	return m.mark(&Event{Line: line, UUID: s.sum.Leaf}, s, trigger, m.context)
}

// usage takes how many tokens are in use, and says which part of the budget that passes; "" none.
func (m *Marks) usage(c *Context, s *Session) Trigger {
	if c.Epoch != m.epoch {
		m.epoch, m.tokens = c.Epoch, 0
		if c.Cause == RewindCause {
			m.before = m.passed
		}
		if !m.writers || c.Cause == CompactionCause {
			m.passed, m.writers = [2]passed{}, false
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
	return m.pass(c.Tokens, s.TokenBudget().Limit)
}

// pass notes which parts of the budget are passed, and names the largest for which that is news.
func (m *Marks) pass(tokens, limit int64) (news Trigger) {
	for i, part := range parts {
		if limit <= 0 || tokens < threshold(limit, part.percent) {
			break
		}
		if m.passed[i].counts(limit) {
			news = part.trigger
		}
		m.passed[i] = max(m.passed[i], passed(limit))
	}
	return news
}

// threshold is the least number that is so many percent of limit, or more.
func threshold(limit, percent int64) int64 {
	return limit/100*percent + (limit%100*percent+99)/100
}

func (m *Marks) mark(e *Event, s *Session, trigger Trigger, tokens int64) Mark {
	if tokens <= 0 {
		tokens = m.context
	}
	files := slices.Clone(s.sum.ActiveFiles)
	slices.Reverse(files)
	for i, path := range files {
		files[i] = strings.Map(printed, path)
	}
	return Mark{
		Trigger: trigger, Line: e.Line, UUID: e.UUID, Time: e.Time, Tokens: tokens, Limit: s.TokenBudget().Limit, Model: s.model,
		ContextHash: m.chain.hash(), Summary: m.gist.summary(s), ActiveFiles: files,
	}
}

// printed drops what a terminal would obey.
func printed(r rune) rune {
	if unicode.IsControl(r) {
		return -1
	}
	return r
}

// TokenBudget is how many tokens the conversation can hold, with the model that answered last.
func (s *Session) TokenBudget() Budget {
	for i := range s.models {
		if m := &s.models[i]; m.name == s.model && s.model != "" {
			return BudgetFor(m.name, m.most, m.boundary, s.Budget)
		}
	}
	return BudgetFor("", 0, 0, s.Budget)
}

const marksVersion = 1

// MarshalBinary encodes the state, so that another Marks can go on where this one is. The error is always nil.
func (m *Marks) MarshalBinary() ([]byte, error) { return encode(marksVersion, m.layout), nil }

// UnmarshalBinary replaces the state. The error wraps ErrState; nothing has been seen then.
func (m *Marks) UnmarshalBinary(data []byte) error {
	*m = Marks{}
	if err := decode("marks", data, marksVersion, m.layout); err != nil {
		*m = Marks{}
		return err
	}
	return nil
}

func (m *Marks) layout(c *codec) {
	c.ints(&m.epoch, &m.tokens, &m.context)
	for i := range m.passed {
		c.ints((*int64)(&m.passed[i]), (*int64)(&m.before[i]))
	}
	c.bools(&m.writers)
	m.chain.layout(c)
	m.gist.layout(c)
}
