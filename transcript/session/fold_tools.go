package session

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ccship/ccship/transcript"
)

// toolStart handles a tool call.
func (s *Fold) toolStart(line int64, r *transcript.Record, p *transcript.RawBlock) {
	id, name := transcript.Unquote(p.ID), transcript.Unquote(p.Name)
	c, known := s.calls.get(hash(id))
	if known && c.started {
		return
	}
	s.sum.Tools++
	before := c
	c.started = true
	c.agent = name == "Task" || name == "Agent"
	s.calls.set(hash(id), c)
	path := transcript.ToolPath(name, p.Input)
	if path != "" {
		s.touchFile(path)
	}
	e := s.event(ToolStartEvent, line, r)
	e.ToolID, e.ToolName, e.MessageID = id, name, r.Message.ID
	e.Input, e.Path = string(transcript.ToolInput(name, p.Input, s.InputLimit)), path
	s.fileStart(line, r, id, name, path, before)
	if name == "ExitPlanMode" {
		s.plan(line, r, transcript.StringField(p.Input, "plan"))
	}
	if c.agent {
		s.agent(line, r, Agent{
			ToolID: clone(id), Type: clone(transcript.StringField(p.Input, "subagent_type")),
			Description: clone(transcript.StringField(p.Input, "description")),
		})
	}
}

// touchFile moves a file to the end of the list of active files.
func (s *Fold) touchFile(path string) {
	path = clone(path)
	files := slices.DeleteFunc(s.sum.ActiveFiles, func(f string) bool { return f == path })
	if len(files) == maxFiles {
		files = files[1:]
	}
	s.sum.ActiveFiles = append(files, path)
}

// toolResult handles the result of a tool call.
func (s *Fold) toolResult(line int64, r *transcript.Record, p *transcript.RawBlock) {
	id := transcript.Unquote(p.ID)
	c, known := s.calls.get(hash(id))
	if known && c.done && !c.started {
		return // a second result
	}
	if p.Failed {
		s.sum.ToolErrors++
	}
	agent := c.agent || !known
	c.done, c.failed = true, p.Failed
	s.calls.set(hash(id), c)
	e := s.event(ToolCompleteEvent, line, r)
	e.ToolID, e.Success, e.Text = id, !p.Failed, p.Output(cmp.Or(s.OutputLimit, MaxOutput))
	s.fileResult(line, r, id, p)
	if agent {
		s.agentAnswered(line, r, id, c.agent)
	}
}

// agentAnswered handles the result of a call that starts an agent: what the agent reports, or that it works in the
// background. A call that failed, or that the person rejected, has no agent any more. called says that it is such a
// call.
func (s *Fold) agentAnswered(line int64, r *transcript.Record, id string, called bool) {
	update := Agent{ToolID: clone(id), Done: true}
	if len(r.ToolResult) > 0 && r.ToolResult[0] == '{' {
		status := transcript.StringField(r.ToolResult, "status")
		started := strings.HasSuffix(status, "_launched") || strings.HasSuffix(status, "_spawned")
		update.ID = clone(transcript.StringField(r.ToolResult, "agentId"))
		update.Type = clone(transcript.StringField(r.ToolResult, "agentType"))
		update.Background = transcript.BoolField(r.ToolResult, "isAsync") || started
		update.Done = !update.Background
	}
	if called || update.ID != "" {
		s.agent(line, r, update)
	}
}

// agentEnded looks for the end of an agent in what a background task, or the agent itself, says.
func (s *Fold) agentEnded(line int64, r *transcript.Record, text string) {
	end, ok := transcript.AgentEndOf(text)
	if !ok {
		return
	}
	for _, a := range s.sum.Agents {
		if !a.Done && (a.ToolID == end.ToolID && end.ToolID != "" || a.ID == end.AgentID && end.AgentID != "") {
			s.agent(line, r, Agent{ToolID: a.ToolID, Done: true})
		}
	}
}

// agentsKilled ends all agents in the background.
func (s *Fold) agentsKilled(line int64, r *transcript.Record) {
	for _, a := range s.sum.Agents {
		if a.Background && !a.Done {
			s.agent(line, r, Agent{ToolID: a.ToolID, Done: true})
		}
	}
}

// agent merges an update into what is known of an agent and emits all of it.
func (s *Fold) agent(line int64, r *transcript.Record, update Agent) {
	i := slices.IndexFunc(s.sum.Agents, func(a Agent) bool { return a.ToolID == update.ToolID })
	if i < 0 {
		if len(s.sum.Agents) == maxAgents {
			s.sum.Agents = slices.Delete(s.sum.Agents, 0, 1)
		}
		s.sum.Agents = append(s.sum.Agents, update)
		i = len(s.sum.Agents) - 1
	}
	a := &s.sum.Agents[i]
	a.ID, a.Type = cmp.Or(update.ID, a.ID), cmp.Or(a.Type, update.Type)
	a.Description = cmp.Or(a.Description, update.Description)
	a.Background, a.Done = a.Background || update.Background, a.Done || update.Done
	copied := *a
	s.event(AgentEvent, line, r).Agent = &copied
}
