package session

import "github.com/ccship/ccship/transcript"

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
