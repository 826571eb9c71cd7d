package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ccship/ccship/transcript"
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

// summaryParts are the parts of a checkpoint's summary: the latest prompts and answers, and the tools used since the
// last compaction.
type summaryParts struct {
	excerpts []excerpt
	tools    []toolCount
}

type excerpt struct {
	prompt bool
	line   int64
	text   string
}

type toolCount struct {
	name  string
	calls int64
}

// Limits of summaryParts, in characters unless noted. Together they keep the summary below 1 000 characters.
const (
	maxExcerpt        = 260
	maxPromptExcerpts = 3 // prompts kept; the summary shows the last two
	maxAnswerExcerpts = 2 // answers kept
	maxToolNames      = 32
	summaryTools      = 8
	summaryToolLine   = 120
	summaryTitleSize  = 120
	summaryEarlier    = 160 // of the prompt before the last
)

func (g *summaryParts) add(e *Event) {
	switch e.Kind {
	case PromptEvent, TaskEvent:
		g.keep(excerpt{prompt: true, line: e.Line, text: transcript.OneLine(e.Text, maxExcerpt)}, maxPromptExcerpts)
	case AnswerEvent:
		if text := lastSentences(e.Text, maxExcerpt); text != "" && !e.Synthetic {
			g.keep(excerpt{line: e.Line, text: text}, maxAnswerExcerpts)
		}
	case ToolStartEvent:
		g.count(e.ToolName)
	}
}

// keep keeps the latest excerpts of each kind.
func (g *summaryParts) keep(s excerpt, most int) {
	if s.text == "" {
		return
	}
	n := 0
	for i := len(g.excerpts) - 1; i >= 0; i-- {
		if g.excerpts[i].prompt != s.prompt {
			continue
		}
		if n++; n == most {
			g.excerpts = slices.Delete(g.excerpts, i, i+1)
			break
		}
	}
	g.excerpts = append(g.excerpts, s)
}

func (g *summaryParts) count(name string) {
	name = transcript.OneLine(name, 64)
	if i := slices.IndexFunc(g.tools, func(t toolCount) bool { return t.name == name }); i >= 0 {
		g.tools[i].calls++
		return
	}
	if len(g.tools) < maxToolNames && name != "" {
		g.tools = append(g.tools, toolCount{name, 1})
	}
}

func (g *summaryParts) cut(r *Rewind) {
	g.excerpts = slices.DeleteFunc(g.excerpts, func(s excerpt) bool { return r.Leaves(s.line) })
}

func (g *summaryParts) restart() { g.tools = nil }

// texts returns the texts of one kind, newest last.
func (g *summaryParts) texts(prompts bool) (texts []string) {
	for _, s := range g.excerpts {
		if s.prompt == prompts {
			texts = append(texts, s.text)
		}
	}
	return texts
}

// summary describes in a few lines what the session is about now, in the session's own words.
func (g *summaryParts) summary(s *Fold) string {
	var lines []string
	add := func(label, text string) {
		if text != "" {
			lines = append(lines, label+": "+text)
		}
	}
	prompts, answers := g.texts(true), g.texts(false)
	last := ""
	if n := len(prompts); n > 0 {
		last = prompts[n-1]
	}
	if title, _ := s.titled(); title != last {
		add("Title", transcript.OneLine(title, summaryTitleSize))
	}
	if n := len(prompts); n > 1 {
		add("Earlier", transcript.OneLine(prompts[n-2], summaryEarlier))
	}
	add("Prompt", last)
	if n := len(answers); n > 0 {
		add("Answer", answers[n-1])
	}
	add("Tools", g.toolLine())
	return strings.Join(lines, "\n")
}

func (g *summaryParts) toolLine() string {
	tools := slices.Clone(g.tools)
	slices.SortFunc(tools, func(a, b toolCount) int {
		return cmp.Or(cmp.Compare(b.calls, a.calls), cmp.Compare(a.name, b.name))
	})
	var parts []string
	for _, t := range tools[:min(len(tools), summaryTools)] {
		parts = append(parts, fmt.Sprintf("%s %d", transcript.OneLine(t.name, 24), t.calls))
	}
	return transcript.OneLine(strings.Join(parts, ", "), summaryToolLine)
}

// lastSentences returns the end of a text on one line, at most limit characters, starting at a sentence if there is
// one, otherwise at a word.
func lastSentences(text string, limit int) string {
	most := limit * utf8.UTFMax * 2
	cut := len(text) > most
	if cut {
		text = text[len(text)-most:]
		for len(text) > 0 && !utf8.RuneStart(text[0]) {
			text = text[1:]
		}
	}
	line := []rune(transcript.OneLine(text, most))
	if len(line) <= limit && !cut {
		return string(line)
	}
	end := line[max(0, len(line)-limit+1):]
	for i := 0; i < len(end)/2; i++ {
		switch {
		case strings.ContainsRune("。！？", end[i]), i > 0 && end[i] == ' ' && strings.ContainsRune(".!?:", end[i-1]):
			return strings.TrimLeft(string(end[i+1:]), " ")
		}
	}
	if i := slices.Index(end, ' '); i >= 0 && i < len(end)/2 {
		end = end[i+1:]
	}
	return "…" + string(end)
}

func (g *summaryParts) layout(c *codec) {
	list(c, &g.excerpts, maxPromptExcerpts+maxAnswerExcerpts, func(s *excerpt) {
		c.bools(&s.prompt)
		c.int(&s.line)
		c.text(&s.text)
	})
	list(c, &g.tools, maxToolNames, func(t *toolCount) { c.text(&t.name); c.int(&t.calls) })
}
