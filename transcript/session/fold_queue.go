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
