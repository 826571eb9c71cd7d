package session

import "github.com/ccship/ccship/transcript"

// countUsage takes an answer's tokens once: of several lines with one message id the one that says most. known is whether
// there was one before.
func (s *Fold) countUsage(line int64, r *transcript.Record, u transcript.Usage) (key uint64, known bool) {
	sample := transcript.UsageSample{
		MessageID: r.Message.ID, RequestID: r.RequestID, Model: r.Message.Model, UUID: r.UUID, Time: r.Time, Usage: u,
		Line: line, Sidechain: r.Sidechain, Final: r.Message.StopReason != "",
	}
	key = hash(sample.Key())
	before, known := s.answers.get(key)
	main := !r.Sidechain || s.ownership.agent
	if main && !before.main {
		s.sum.Answers++
	}
	if !known || main && !before.main || main == before.main && u.Output >= before.usage.Output {
		news := u.Minus(before.usage)
		s.sum.Usage = s.sum.Usage.Plus(news)
		s.turn.Usage = s.turn.Usage.Plus(news)
		s.answers.set(key, counted{u, main})
	}
	s.event(UsageEvent, line, r).Usage = &sample
	return key, known
}

// modelAnswered notes which model answered, and how much it held. A late line of an older answer tells nothing of now.
func (s *Fold) modelAnswered(line int64, r *transcript.Record, u transcript.Usage) {
	key, known := s.countUsage(line, r, u)
	context := u.Context()
	if context == 0 || known && key != s.newest {
		return
	}
	s.newest = key
	if name := r.Message.Model; name != "" {
		m := s.modelState(name)
		m.most = max(m.most, context)
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

// setContext takes the tokens in use, and tells when they changed. 0 is not known.
func (s *Fold) setContext(line int64, r *transcript.Record, tokens int64, cause ContextCause) {
	c := &s.sum.Context
	before := *c
	dropped := before.Known && tokens < before.Tokens-before.Tokens*3/10
	switch {
	case cause == RewindCause, cause == CompactionCause && r.Subtype == "compact_boundary":
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
	told := *c
	s.event(ContextEvent, line, r).Context = &told
}

// compacted takes the boundary of a compaction.
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
