package web

import (
	"time"

	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/transcript"
)

// liveState says what a session does now, by its last records. Claude Code writes nothing while it waits for a
// permission, so a call without a result is either running or waiting.
type liveState struct {
	State string // "working", "waits", "maybe", "failed", "done"; "" when the records do not tell
	Words string
	Last  string // the last thing said or done
	Needs bool   // a person has to look
}

const (
	// homePatience is how long a call may be without a result before it may be waiting for permission.
	homePatience = 20 * time.Second
	// silence is how long Claude Code may write nothing before it counts as gone.
	silence = 10 * time.Minute
	// abandoned is how long a call may be without a result before it counts as stopped: no command runs that long, and a
	// question for permission that nobody answered has gone with its terminal.
	abandoned = time.Hour
)

// liveStateOf reads records from the last one back. active is when the last one was written.
func liveStateOf(records []transcript.Record, active, now time.Time) (s liveState) {
	answered := map[string]bool{}
	quiet := now.Sub(active)
	mode := ""
	for i := len(records) - 1; i >= 0; i-- {
		if mode == "" {
			mode = records[i].PermissionMode
		}
	}
	for i := len(records) - 1; i >= 0; i-- {
		r := &records[i]
		if r.Message == nil || r.Sidechain || r.Meta {
			continue
		}
		if s.Last == "" {
			s.Last = r.Preview()
		}
		if s.State == "" {
			s.decide(r, answered, quiet, mode)
		}
		if s.State != "" && s.Last != "" {
			return s
		}
	}
	return s
}

// decide reads one record. answered are the calls that later records have results of.
func (s *liveState) decide(r *transcript.Record, answered map[string]bool, quiet time.Duration, mode string) {
	switch {
	case r.APIError:
		s.State, s.Words, s.Needs = "failed", "Failed: the model could not be reached", true
	case r.Interrupted():
		s.State, s.Words = "done", "Interrupted by the user"
	case r.Type == "user":
		results := false
		for _, b := range r.Message.Blocks() {
			if b.Kind == transcript.ToolResultBlock {
				answered[b.ToolID], results = true, true
			}
		}
		if results || r.Speech().Speaker != transcript.NoSpeaker {
			s.works(quiet)
		}
	case r.Type == "assistant" && !r.Message.Synthetic():
		s.answer(r, answered, quiet, mode)
	}
}

func (s *liveState) works(quiet time.Duration) {
	s.State, s.Words = "working", "Working"
	if quiet > silence {
		s.State, s.Words = "done", "Stopped before an answer"
	}
}

// answer decides by a record of an answer: a call that nothing answered, or the end of a turn.
func (s *liveState) answer(r *transcript.Record, answered map[string]bool, quiet time.Duration, mode string) {
	calls, text := false, false
	for _, b := range r.Message.Blocks() {
		if b.Kind != transcript.ToolUseBlock {
			text = text || b.Kind == transcript.TextBlock
			continue
		}
		calls = true
		if answered[b.ToolID] {
			continue
		}
		took := page.Duration(quiet.Truncate(time.Second))
		switch {
		case quiet > recent && (b.ToolName == "AskUserQuestion" || b.ToolName == "ExitPlanMode"):
			s.State, s.Words = "done", "Stopped at a question"
		case b.ToolName == "AskUserQuestion":
			s.State, s.Words, s.Needs = "waits", "Waiting: Claude asks a question", true
		case b.ToolName == "ExitPlanMode":
			s.State, s.Words, s.Needs = "waits", "Waiting: a plan needs approval", true
		case quiet <= homePatience || mode == "bypassPermissions":
			s.works(quiet)
			if s.State == "done" {
				s.Words = "Stopped during " + b.ToolName
			}
		case quiet > abandoned:
			s.State, s.Words = "done", "Stopped during "+page.OneLine(b.ToolName, 60)
		default:
			s.State, s.Needs = "maybe", true
			s.Words = b.ToolName + " for " + took + ": running, or waiting for permission"
		}
		return
	}
	reason := r.Message.StopReason
	if reason == "" && text && quiet > silence {
		reason = "end_turn" // old versions of Claude Code never write one: the answer stands last
	}
	switch {
	case calls, reason == "" || reason == "tool_use":
		s.works(quiet)
	default:
		s.State, s.Words = "done", "Finished; your turn"
	}
}
