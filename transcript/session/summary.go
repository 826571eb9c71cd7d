package session

import (
	"slices"
	"time"

	"github.com/ccship/ccship/transcript"
)

// Summary is an overview of a session.
type Summary struct {
	SessionID           string // from the records; the file name is more reliable
	AgentID             string // "" for a main transcript
	Title               string
	TitleKind           transcript.TitleKind
	FirstPrompt         string   // one line of at most 300 characters; an agent's is its task
	Model               string   // of the newest answer
	Models              []string // in order of first use, at most 16
	Branch, Cwd         string   // newest
	FirstCwd            string
	Version, Entrypoint string
	PermissionMode      string
	Started, Ended      time.Time // earliest and latest time of a record; zero if no record has one

	Prompts     int64 // by a human, including those on abandoned branches
	Answers     int64 // by a model, each counted once
	Messages    int64 // Prompts + Answers
	Tools       int64 // calls, each counted once
	ToolErrors  int64
	APIErrors   int64
	Compactions int64
	Rewinds     int64            // not counting those undone
	Turns       int64            // that have a result: work of the model, an error or an interruption
	Usage       transcript.Usage // of Answers and inline sidechains, each answer counted once

	Context     Context
	Budget      Budget
	ForkedFrom  string // session id
	Labels      transcript.Labels
	Agents      []Agent  // newest last, at most 64
	ActiveFiles []string // files that tools worked on, newest last, at most 20
	Leaf        string   // uuid of the current end of the conversation
}

// Summary returns what the records added so far mean together. The caller owns it.
func (s *Fold) Summary() Summary {
	sum := s.sum
	if sum.Title, sum.TitleKind = s.titled(); sum.TitleKind <= transcript.OtherTitle && sum.Labels.AgentName != "" {
		sum.Title, sum.TitleKind = sum.Labels.AgentName, transcript.AITitle // of a teammate, whom no person prompts
	}
	sum.Model = s.model
	sum.Models = make([]string, 0, len(s.models))
	for _, m := range s.models {
		sum.Models = append(sum.Models, m.name)
	}
	sum.Messages = sum.Prompts + sum.Answers
	sum.Agents, sum.ActiveFiles = slices.Clone(sum.Agents), slices.Clone(sum.ActiveFiles)
	sum.Budget = s.TokenBudget()
	return sum
}
