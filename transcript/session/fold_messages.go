package session

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ccship/ccship/transcript"
)

// user handles a user record: a prompt, a command, tool results, an interruption.
func (s *Fold) user(line int64, r *transcript.Record, g *treeRecord) {
	if r.Message == nil {
		return
	}
	blocks := r.Message.RawBlocks()
	for i := range blocks {
		p := &blocks[i]
		if p.Kind == transcript.ToolResultBlock {
			s.toolResult(line, r, p)
		}
	}
	for _, reply := range r.Replies() {
		e := s.event(ReplyEvent, line, r)
		e.ToolID, e.Text = reply.ToolID, transcript.Cut(reply.Text, MaxText)
	}
	switch {
	case r.Interrupted():
		s.interrupt(line, r)
	case s.ownership.agent && !r.Meta && r.ParentUUID == "" && s.sum.FirstPrompt == "":
		s.task(line, r)
	case g.said.Speaker != transcript.NoSpeaker:
		s.spoken(line, r, g.said)
	case !r.Meta:
		s.command(line, r)
	}
}

// task handles what an agent is to do.
func (s *Fold) task(line int64, r *transcript.Record) {
	text := r.Message.Text()
	s.sum.FirstPrompt = transcript.OneLine(text, maxPrompt)
	s.title(line, r, transcript.PromptTitle, transcript.PromptHeading(text, maxPrompt))
	s.event(TaskEvent, line, r).Text = transcript.Cut(text, MaxText)
	s.openTurn(line, r)
}

// spoken handles what a speaker says to the model.
func (s *Fold) spoken(line int64, r *transcript.Record, said transcript.Speech) {
	raw := r.Text
	if r.Message != nil {
		raw = r.Message.Text()
	}
	fresh := s.leaveQueue(raw) || s.leaveQueue(said.Text)
	switch {
	case said.Speaker.Human():
		s.prompt(line, r, said, fresh)
	case said.Speaker != transcript.NoSpeaker:
		s.message(line, r, said, raw, fresh)
	}
}

// message handles what another speaker than the person says. raw is how the record has it; it is no copy when it is
// fresh from the queue.
func (s *Fold) message(line int64, r *transcript.Record, said transcript.Speech, raw string, fresh bool) {
	id := promptHash(raw)
	if !fresh && slices.Contains(s.queuedPrompts, id) {
		return
	}
	queued := r.Type == "attachment" || r.Type == "queue-operation"
	if queued {
		s.rememberQueued(id)
	}
	if !queued || !s.turn.open {
		s.nextTurn(line, r)
	}
	e := s.event(MessageEvent, line, r)
	e.Speaker, e.From, e.Queued = said.Speaker, said.From, queued
	e.SessionID, e.Text = cmp.Or(r.SessionID, s.sum.SessionID), transcript.Cut(said.Text, MaxText)
	s.otherTitle(line, r, said.Label(), said.Text)
	s.agentEnded(line, r, raw)
}

// otherTitle gives a session that no prompt names the first words that another says, after the name of who says them or
// what they answer: "Scheduled task: look at the deploy", "/init: This is a shop".
func (s *Fold) otherTitle(line int64, r *transcript.Record, name, text string) {
	if s.titles[transcript.PromptTitle] != "" || s.titles[transcript.OtherTitle] != "" {
		return
	}
	text = cmp.Or(transcript.PromptHeading(text, maxPrompt), strings.TrimSpace(text))
	if text != "" {
		s.title(line, r, transcript.OtherTitle, name+": "+text)
	}
}

// promptHash identifies a prompt by the beginning of its text. Records of one prompt differ in the space around it.
func promptHash(text string) uint64 {
	text = strings.TrimSpace(text)
	return hash(text[:min(len(text), minQueueText)])
}

// prompt handles what the person says. A prompt from the queue is recorded up to three times: the first is fresh.
func (s *Fold) prompt(line int64, r *transcript.Record, said transcript.Speech, fresh bool) {
	text, fromQueue := said.Text, r.Type == "attachment" || r.PromptSource == "queued"
	id := promptHash(text)
	if !fresh && slices.Contains(s.queuedPrompts, id) {
		return
	}
	middle := fromQueue || r.SourceID != ""
	if !middle || !s.turn.open {
		s.nextTurn(line, r)
	}
	if s.dequeued && text != "" && id == s.guessed { // what left before was something else
		s.dequeued, s.guessed = false, 0
		return
	}
	if fromQueue {
		s.rememberQueued(id)
	}
	s.sum.Prompts++
	e := s.event(PromptEvent, line, r)
	e.Text, e.Queued = r.WithImages(transcript.Cut(text, MaxText)), middle
	e.Speaker, e.From = said.Speaker, said.From
	s.namePrompt(line, r, text)
}

// namePrompt makes a prompt the last one. The first one that says something gives the session a title, or the plan that
// it carries out.
func (s *Fold) namePrompt(line int64, r *transcript.Record, text string) {
	short := transcript.OneLine(text, maxPrompt)
	if short == "" {
		short = transcript.ImageOnly
	}
	if s.sum.FirstPrompt == "" {
		s.sum.FirstPrompt = short
	}
	if s.titles[transcript.PromptTitle] == "" {
		s.title(line, r, transcript.PromptTitle, transcript.PromptHeading(text, maxPrompt))
	}
	if r.FromPlan || strings.HasPrefix(text, implementPlan) {
		s.plan(line, r, text)
	}
}

// implementPlan begins the prompt that Claude Code makes of an accepted plan.
const implementPlan = "Implement the following plan"

// plan gives the session the heading of a plan as its title.
func (s *Fold) plan(line int64, r *transcript.Record, plan string) {
	if heading := transcript.PlanHeading(plan, maxPrompt); heading != "" {
		s.title(line, r, transcript.PlanTitle, heading)
	}
}

func (s *Fold) rememberQueued(id uint64) { s.queuedPrompts = remember(s.queuedPrompts, id) }

// remember adds to the newest hashes.
func remember(ids []uint64, id uint64) []uint64 {
	if len(ids) == maxQueue {
		ids = append(ids[:0], ids[1:]...)
	}
	return append(ids, id)
}

func (s *Fold) command(line int64, r *transcript.Record) {
	s.modelChosen(r)
	name, args, ok := r.Command()
	text := strings.TrimSpace("/" + name + " " + args)
	if !ok || slices.Contains(s.queuedPrompts, promptHash(text)) {
		return
	}
	s.leaveQueue(text)
	s.event(CommandEvent, line, r).Text = transcript.Cut(text, transcript.MaxInput)
}

// modelChosen notes the model that Claude Code says was chosen: "Set model to Opus 4.6 (1M context)".
func (s *Fold) modelChosen(r *transcript.Record) {
	said := r.Text
	if r.Message != nil {
		said = r.Message.Text()
	}
	said, found := strings.CutPrefix(said, "<local-command-stdout>Set model to ")
	if !found {
		return
	}
	if s.asked = "[default]"; transcript.AskedWindow(said) > 0 {
		s.asked = "[1m]"
	}
}

// assistant handles one or more blocks of an answer.
func (s *Fold) assistant(line int64, r *transcript.Record) {
	m := r.Message
	if m == nil {
		return
	}
	if r.APIError {
		s.sum.APIErrors++
		s.hasResult()
		e := s.event(ErrorEvent, line, r)
		if e.Text = transcript.Cut(m.Text(), MaxText); e.Text == "" {
			e.Text = r.Error
		}
		s.endTurn(line, r)
		return
	}
	if !m.Synthetic() {
		s.worked(line, r)
	}
	if u := usageOf(r); u != nil {
		s.modelAnswered(line, r, *u)
	}
	hasText := false
	blocks := m.RawBlocks()
	for i := range blocks {
		p := &blocks[i]
		switch p.Kind {
		case transcript.TextBlock:
			if transcript.OnlySpace(p.Text) {
				continue
			}
			e := s.event(AnswerEvent, line, r)
			e.Text, e.MessageID, e.Synthetic = transcript.CutEscaped(p.Text, MaxText), m.ID, m.Synthetic()
			if hasText = true; s.sum.FirstPrompt != "" && !m.Synthetic() {
				s.otherTitle(line, r, s.sum.FirstPrompt, e.Text)
			}
		case transcript.ToolUseBlock:
			s.toolStart(line, r, p)
		case transcript.ToolResultBlock:
			s.toolResult(line, r, p) // of a tool that ran on the server
		}
	}
	if hasText && m.StopReason == "end_turn" {
		s.endTurn(line, r)
	}
}

func (s *Fold) system(line int64, r *transcript.Record) {
	switch r.Subtype {
	case "compact_boundary":
		s.compacted(line, r)
	case "microcompact_boundary":
		if left := s.sum.Context.Tokens - r.Compact.Saved; s.sum.Context.Known && left > 0 {
			s.setContext(line, r, left, CompactionCause)
		}
	case "turn_duration":
		if s.turn.durationStated && !s.turn.open {
			return // of something that was no turn
		}
		if r.Duration > 0 {
			s.turn.Duration, s.turn.durationStated = r.Duration, true
		}
		s.endTurn(line, r)
	case "stop_hook_summary":
		if s.turn.open {
			s.endTurn(line, r)
		}
	case "local_command":
		s.command(line, r)
	case "agents_killed":
		s.agentsKilled(line, r)
	}
}

// interrupt ends a turn. Where none has begun there is nothing to interrupt: when a plan is accepted with cleared
// context, Claude Code 2.1.197 begins the new transcript with the old one's last record.
func (s *Fold) interrupt(line int64, r *transcript.Record) {
	if s.turn.Number == 0 && !s.turn.open {
		return
	}
	s.event(InterruptEvent, line, r)
	s.turn.Interrupted = true
	s.hasResult()
	s.endTurn(line, r)
}

// nextTurn starts a turn with a prompt or a message.
func (s *Fold) nextTurn(line int64, r *transcript.Record) {
	s.closeTurn()
	s.queuedPrompts, s.left = s.queuedPrompts[:0], s.left[:0]
	s.turn = turnState{Turn: Turn{Number: s.turn.Number + 1}, open: true, active: true, from: r.Time}
	s.turn.at(line, r)
}

// worked notes that the model does something. After the end of a turn that has its duration, that is a turn of its own;
// after another end, the turn goes on.
func (s *Fold) worked(line int64, r *transcript.Record) {
	if !s.turn.open {
		_, known := s.answers.get(hash((&transcript.UsageSample{MessageID: r.Message.ID, RequestID: r.RequestID}).Key()))
		if s.turn.durationStated && !known {
			s.nextTurn(line, r)
			e := s.event(MessageEvent, line, r)
			e.Speaker, e.Text = transcript.Background, "goes on"
		} else {
			s.openTurn(line, r)
		}
	}
	s.hasResult()
}

// hasResult counts the turn, once: the model does something in it, the API fails or the person interrupts it. A prompt
// or a message that the next one replaces before that is no turn.
func (s *Fold) hasResult() {
	if !s.turn.result {
		s.sum.Turns++
	}
	s.turn.result = true
}

// openTurn notes that the model is working although no prompt has started a turn.
func (s *Fold) openTurn(line int64, r *transcript.Record) {
	if !s.turn.active {
		s.turn.from = r.Time
	}
	s.turn.open, s.turn.active = true, true
	s.turn.at(line, r)
}

// at notes the newest record of an open turn.
func (t *turnState) at(line int64, r *transcript.Record) {
	if !t.open {
		return
	}
	t.line, t.uuid = line, r.UUID
	if r.Time.After(t.to) {
		t.to = r.Time
	}
}

// closeTurn ends a turn that has no end of its own, because the next one starts.
func (s *Fold) closeTurn() {
	if s.turn.open {
		s.endTurn(s.turn.line, &transcript.Record{UUID: s.turn.uuid, SessionID: s.sum.SessionID, Time: s.turn.to})
	}
}

// endTurn emits the end of a turn. If the turn continues after all, the event is emitted again.
func (s *Fold) endTurn(line int64, r *transcript.Record) {
	s.queuedPrompts = s.queuedPrompts[:0]
	if !s.turn.active {
		return
	}
	s.turn.open = false
	for i := range s.calls.items {
		s.calls.items[i].value.done = true
	}
	t := s.turn.Turn
	t.Unanswered = !s.turn.result
	if !s.turn.durationStated && !s.turn.from.IsZero() && s.turn.to.After(s.turn.from) {
		t.Duration = s.turn.to.Sub(s.turn.from)
	}
	s.event(TurnEvent, line, r).Turn = &t
}
