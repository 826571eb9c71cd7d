package session

import "github.com/ccship/ccship/transcript"

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
