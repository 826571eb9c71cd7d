package session

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ccship/ccship/transcript"
)

// What is typed while the model works waits in a queue, and so do notices of background tasks. The records of the queue
// say what came and that something left. What left they often do not say; what the model received as a record of its
// own left as well, and some of that is not recorded at all. So the queue is matched by content where there is any, and
// what the person typed goes before what nobody typed.

// queueOperation follows the queue.
func (s *Fold) queueOperation(line int64, r *transcript.Record) {
	if r.Time.Before(s.queueTime) {
		return // a copy
	}
	s.queueTime = r.Time
	if s.dequeued { // no record followed
		s.dequeued = false
		s.takeQueued("")
	}
	switch r.Subtype {
	case "enqueue":
		s.enqueue(r.Text)
		s.agentEnded(line, r, r.Text)
	case "dequeue":
		s.dequeued = true
	case "remove":
		s.remove(line, r)
	case "popAll": // what was typed is back in the input box
		s.queue = slices.DeleteFunc(s.queue, func(q string) bool { return queueRank(q) < notTyped })
	}
}

func (s *Fold) enqueue(text string) {
	if len(s.queue) == maxQueue {
		s.queue = slices.Delete(s.queue, 0, 1)
	}
	room := maxQueueText
	for _, q := range s.queue {
		room -= len(q)
	}
	s.queue = append(s.queue, transcript.Cut(text, max(room, minQueueText)))
}

// leaveQueue takes a text out of the queue that a record has. It reports whether it was there, or left without having
// been told: then the record is no copy of what an equal text said before.
func (s *Fold) leaveQueue(text string) bool {
	if text == "" {
		return false
	}
	id := promptHash(text)
	if i := slices.Index(s.left, id); i >= 0 {
		s.left = slices.Delete(s.left, i, i+1)
		return true
	}
	i := slices.IndexFunc(s.queue, func(q string) bool { return promptHash(q) == id })
	if i < 0 {
		return false
	}
	s.queue, s.dequeued = slices.Delete(s.queue, i, i+1), false
	return true
}

// Ranks of what waits in the queue: what leaves it first where its records do not say.
const (
	typedPrompt = iota
	typedCommand
	notTyped
)

func queueRank(text string) int {
	switch {
	case transcript.QueuedSpeech(text).Speaker != transcript.Person:
		return notTyped
	case isCommand(text):
		return typedCommand
	}
	return typedPrompt
}

// isCommand reports whether a text is a slash command rather than a path.
func isCommand(text string) bool {
	name, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	name, slash := strings.CutPrefix(name, "/")
	return slash && name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == ':')
	})
}

// takeQueued takes what left the queue: text, or what most likely did.
func (s *Fold) takeQueued(text string) (taken string, ok bool) {
	best := -1
	for i, q := range s.queue {
		switch {
		case text != "" && promptHash(q) != promptHash(text):
		case best < 0 || queueRank(q) < queueRank(s.queue[best]):
			best = i
		}
	}
	if best < 0 {
		return "", false
	}
	taken = s.queue[best]
	s.queue = slices.Delete(s.queue, best, best+1)
	return taken, true
}

// remove takes something out of the queue: the model received it in the middle of a turn. Since Claude Code 2.1.97 a
// record of its own follows; before that, often nothing else mentions it.
func (s *Fold) remove(line int64, r *transcript.Record) {
	text, ok := s.takeQueued(r.Text)
	if !ok || text == "" {
		return
	}
	if !versionBelow(s.sum.Version, 2, 1, 97) {
		s.left = remember(s.left, promptHash(text))
		return
	}
	switch said := transcript.QueuedSpeech(text); queueRank(text) {
	case typedPrompt:
		if r.Text == "" {
			s.guessed = promptHash(text)
		}
		s.queuedPrompt(line, r, text)
	case typedCommand:
		s.rememberQueued(promptHash(text))
		s.event(CommandEvent, line, r).Text = transcript.Cut(strings.TrimSpace(text), transcript.MaxInput)
	case notTyped:
		if said.Speaker != transcript.NoSpeaker {
			s.message(line, r, said, text, true)
		}
	}
}

// queuedPrompt adds a prompt that the model received in the middle of a turn. If a record of its own follows, that is
// recognised as a copy; one that came before took the prompt out of the queue.
func (s *Fold) queuedPrompt(line int64, r *transcript.Record, text string) {
	s.rememberQueued(promptHash(text))
	s.sum.Prompts++
	s.namePrompt(line, r, text)
	e := s.event(PromptEvent, line, r)
	e.SessionID, e.Text, e.Queued = cmp.Or(r.SessionID, s.sum.SessionID), text, true
	e.Speaker = transcript.Person
}

// foldVersion must change when the layout or the meaning of the state changes: all states are then derived again.
const foldVersion = 15

// FoldVersion is the version of a Fold's encoded state. States of another version cannot be decoded.
const FoldVersion = foldVersion

// MarshalBinary encodes the state so that another Fold can continue from it. The error is always nil.
func (s *Fold) MarshalBinary() ([]byte, error) { return encode(foldVersion, s.layout), nil }

// UnmarshalBinary replaces the state, except Budget and the limits. The error wraps ErrState; the Fold is then empty.
func (s *Fold) UnmarshalBinary(data []byte) error {
	fresh := Fold{Budget: s.Budget, InputLimit: s.InputLimit, OutputLimit: s.OutputLimit}
	fresh.bounds()
	if err := decode("session", data, foldVersion, fresh.layout); err != nil {
		*s = Fold{Budget: s.Budget, InputLimit: s.InputLimit, OutputLimit: s.OutputLimit}
		return err
	}
	*s = fresh
	return nil
}

func (s *Fold) layout(c *codec) {
	s.sum.layout(c)
	for i := range s.titles {
		c.text(&s.titles[i])
	}
	list(c, &s.summaries, maxSummaries, func(l *looseSummary) { c.fixed(&l.leaf); c.text(&l.title) })
	c.bools(&s.ownership.known, &s.ownership.agent)
	s.branches.layout(c)
	s.answers.layout(c, func(v *counted) { layoutUsage(c, &v.usage); c.bools(&v.main) })
	s.calls.layout(c, func(v *call) { c.bools(&v.started, &v.done, &v.agent, &v.failed) })
	list(c, &s.files, maxFileCalls, func(f *fileCall) { f.layout(c) })
	list(c, &s.models, maxModels, func(m *modelState) { c.text(&m.name); c.ints(&m.most, &m.boundary, &m.stated) })
	c.text(&s.model, &s.asked)
	c.fixed(&s.newest)
	c.fixed(&s.guessed)
	list(c, &s.queue, maxQueue, func(q *string) { c.text(q) })
	c.bools(&s.dequeued)
	list(c, &s.queuedPrompts, maxQueue, c.fixed)
	list(c, &s.left, maxQueue, c.fixed)
	c.time(&s.queueTime)
	list(c, &s.clears, maxRewinds, c.int)
	t := &s.turn
	c.ints(&t.Number, (*int64)(&t.Duration))
	layoutUsage(c, &t.Usage)
	c.bools(&t.Interrupted, &t.open, &t.active, &t.durationStated, &t.result)
	c.time(&t.from, &t.to)
	c.int(&t.line)
	c.text(&t.uuid)
}

func layoutUsage(c *codec, u *transcript.Usage) {
	c.ints(&u.Input, &u.Output, &u.CacheRead, &u.CacheWrite5m, &u.CacheWrite1h, &u.WebSearches, &u.WebFetches)
}

func (s *Summary) layout(c *codec) {
	c.text(&s.SessionID, &s.AgentID, &s.FirstPrompt, &s.Branch, &s.Cwd, &s.FirstCwd, &s.Version,
		&s.Entrypoint, &s.PermissionMode, &s.ForkedFrom, &s.Leaf,
		&s.Labels.Tag, &s.Labels.AgentName, &s.Labels.PRURL)
	c.time(&s.Started, &s.Ended)
	c.ints(&s.Prompts, &s.Answers, &s.Tools, &s.ToolErrors, &s.APIErrors, &s.Compactions, &s.Rewinds, &s.Turns,
		&s.Labels.PRNumber, &s.Context.Tokens, &s.Context.Epoch)
	layoutUsage(c, &s.Usage)
	c.bools(&s.Context.Known)
	c.text(&s.Context.Model)
	c.byte((*uint8)(&s.Context.Cause))
	list(c, &s.Agents, maxAgents, func(a *Agent) {
		c.text(&a.ID, &a.ToolID, &a.Type, &a.Description)
		c.bools(&a.Background, &a.Done)
	})
	list(c, &s.ActiveFiles, maxFiles, func(f *string) { c.text(f) })
}

func (b *branches) layout(c *codec) {
	before := node{}
	list(c, &b.nodes, b.bound, func(n *node) { b.layoutNode(c, n, &before) })
	list(c, &b.leaves, maxLeaves, func(l *leaf) { c.text(&l.session, &l.uuid); c.fixed(&l.id); c.int(&l.line) })
	list(c, &b.waiting, maxWaiting, func(o *orphan) {
		c.fixed(&o.id)
		c.fixed(&o.parent)
		f := &o.fork
		layoutRewind(c, &f.at)
		c.fixed(&f.leaf)
		c.fixed(&f.prompt.id)
		c.fixed(&f.prompt.parent)
		c.int(&f.prompt.line)
		c.uint32(&f.prompt.time)
		c.uint32(&f.prompt.promptHash)
		c.byte(&f.prompt.flags)
	})
	list(c, &b.rewinds, maxRewinds, func(r *Rewind) { layoutRewind(c, r) })
	c.int(&b.number)
	c.uint32(&b.horizon)
}

// layoutNode encodes a node as the difference to the one before: most records are children of the record before,
// seconds later.
func (b *branches) layoutNode(c *codec, n, before *node) {
	const child, more = 1, 2
	c.fixed(&n.id)
	var kind uint64
	if n.parent == before.id {
		kind |= child
	}
	if n.abandonedBy|n.promptHash != 0 {
		kind |= more
	}
	kind |= uint64(n.flags) << 2
	c.uint(&kind)
	n.flags = uint8(kind >> 2)
	if kind&child == 0 {
		c.fixed(&n.parent)
	} else {
		n.parent = before.id
	}
	if kind&more != 0 {
		c.uint32(&n.abandonedBy)
		c.uint32(&n.promptHash)
	}
	line, context, at := n.line-before.line, int64(n.context)-int64(before.context), int64(n.time)-int64(before.time)
	c.ints(&line, &context, &at)
	n.line, n.context, n.time = before.line+line, uint32(int64(before.context)+context), uint32(int64(before.time)+at)
	*before = *n
	if c.reading {
		if b.at == nil {
			b.at = map[uint64]int32{}
		}
		b.at[n.id] = int32(len(b.at))
	}
}

func layoutRewind(c *codec, r *Rewind) {
	c.ints(&r.Number, &r.FromLine, &r.ToLine, &r.Line)
	c.text(&r.From, &r.To)
	list(c, &r.Left, maxSpans, func(s *Span) { c.ints(&s.First, &s.Last) })
}

// countAnswers counts the tokens of what a record reports of answers, each once: of several lines with one message id,
// the one with the highest numbers counts. key is of the answer itself, known reports whether it had been seen before.
func (s *Fold) countAnswers(line int64, r *transcript.Record) (key uint64, known bool) {
	for sample := range r.Answers() {
		sample.Line = line
		k, seen := s.countAnswer(&sample)
		if sample.Part == 0 {
			key, known = k, seen
		}
		s.event(UsageEvent, line, r).Usage = &sample
	}
	return key, known
}

func (s *Fold) countAnswer(a *transcript.UsageSample) (key uint64, known bool) {
	key = hash(a.Key())
	before, known := s.answers.get(key)
	main := !a.Sidechain || s.ownership.agent
	if main && !before.main && a.Part == 0 {
		s.sum.Answers++
	}
	if !known || main && !before.main || main == before.main && a.Usage.Output >= before.usage.Output {
		added := a.Usage.Minus(before.usage)
		s.sum.Usage = s.sum.Usage.Plus(added)
		s.turn.Usage = s.turn.Usage.Plus(added)
		s.answers.set(key, counted{a.Usage, main})
	}
	return key, known
}

// modelAnswered records which model answered and how many tokens were in use. A late line of an older answer says
// nothing about the present.
func (s *Fold) modelAnswered(line int64, r *transcript.Record, u transcript.Usage) {
	key, known := s.countAnswers(line, r)
	context := u.Context()
	if context == 0 || known && key != s.newest {
		return
	}
	s.newest = key
	if name := r.Message.Model; name != "" {
		m := s.modelState(name)
		m.most = max(m.most, context)
		if s.asked != "" && transcript.SameModel(s.asked, name) {
			m.stated = transcript.AskedWindow(s.asked)
		}
		s.model = m.name
	}
	s.setContext(line, r, context, AnswerCause)
}

func (s *Fold) modelState(name string) *modelState {
	name = name[:min(len(name), maxName)]
	for i := range s.models {
		if s.models[i].name == name {
			return &s.models[i]
		}
	}
	if len(s.models) == maxModels {
		s.models = append(s.models[:0], s.models[1:]...)
	}
	s.models = append(s.models, modelState{name: clone(name)})
	return &s.models[len(s.models)-1]
}

// setContext sets the tokens in use (0: unknown) and emits an event when they changed.
func (s *Fold) setContext(line int64, r *transcript.Record, tokens int64, cause ContextCause) {
	c := &s.sum.Context
	before := *c
	dropped := before.Known && tokens < before.Tokens-before.Tokens*3/10
	switch {
	case cause == RewindCause, cause == ClearCause, cause == CompactionCause && r.Subtype == "compact_boundary":
		c.Epoch++
	case dropped && tokens > 0:
		c.Epoch++
		cause = DropCause
	}
	c.Tokens, c.Known, c.Model, c.Cause = tokens, tokens > 0, s.model, cause
	if before.Tokens == c.Tokens && before.Known == c.Known && before.Model == c.Model && before.Epoch == c.Epoch {
		c.Cause = before.Cause
		return
	}
	copied := *c
	s.event(ContextEvent, line, r).Context = &copied
}

// compacted handles a compaction boundary.
func (s *Fold) compacted(line int64, r *transcript.Record) {
	s.sum.Compactions++
	c := *r.Compact
	s.event(CompactionEvent, line, r).Compact = &c
	if c.Trigger == "auto" && c.Pre >= 1000 && s.model != "" {
		m := s.modelState(s.model)
		if m.boundary == 0 || c.Pre < m.boundary {
			m.boundary = c.Pre
		}
	}
	s.setContext(line, r, c.Post, CompactionCause)
}
