package session

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/ccship/ccship/transcript"
)

// maxFileCalls is the number of file tool calls that are remembered while their other half is missing.
const maxFileCalls = 32

// maxPath is the longest path in an event, in bytes: Linux's PATH_MAX.
const maxPath = 4096

// maxNonce is the longest nonce in an event, in bytes.
const maxNonce = 128

// fileCall is half of a tool call that changes, links or unlinks a file: the call until its result arrives, or a result
// that came before its call.
type fileCall struct {
	id   uint64 // hash of the tool use id
	name string // of the tool; "" for a result
	path string
	// nonce of a result that requests a link
	nonce string
	kind  EventKind // for a result: the LinkEvent or UnlinkEvent that it requests
}

// editTool reports whether a tool changes the file it works on.
func editTool(name string) bool {
	switch name {
	case "Edit", "MultiEdit", "Write", "NotebookEdit":
		return true
	}
	return false
}

// pluginTools begins the names of the tools of ccship's plugin, as Claude Code makes them of the names of plugin and
// MCP server.
const pluginTools = "mcp__plugin_ccship_ccship__"

// documentTool returns the event that a tool for linking documents requests; 0 for other tools, also those of that name
// of another MCP server.
func documentTool(name string) EventKind {
	switch name {
	case pluginTools + "link_document":
		return LinkEvent
	case pluginTools + "unlink_document":
		return UnlinkEvent
	}
	return 0
}

// fileStart handles a call of a tool whose result may change a file, or link one to the session. c is the call's state
// before this record.
func (s *Fold) fileStart(line int64, r *transcript.Record, id, name, path string, c call) {
	asks := documentTool(name)
	switch {
	case c.failed || asks == 0 && (!editTool(name) || path == "" || len(path) > maxPath):
	case !c.done:
		s.rememberFileCall(fileCall{id: hash(id), name: clone(name), path: strings.Clone(path)})
	case asks == 0:
		s.fileEvent(FileEvent, line, r, id, name, path)
	default:
		if answer, ok := s.takeFileCall(hash(id)); ok && answer.kind == asks {
			s.linkEvent(line, r, id, name, answer)
		}
	}
}

// fileResult handles the result of such a call.
func (s *Fold) fileResult(line int64, r *transcript.Record, id string, p *transcript.RawBlock) {
	begun, known := s.takeFileCall(hash(id))
	if p.Failed {
		return
	}
	if known && documentTool(begun.name) == 0 {
		s.fileEvent(FileEvent, line, r, id, begun.name, begun.path)
		return
	}
	if c, _ := s.calls.get(hash(id)); !known && c.started {
		return // the result of another tool
	}
	answer := documentAnswer(p)
	switch {
	case answer.kind == 0:
	case !known:
		answer.id = hash(id)
		s.rememberFileCall(answer)
	case answer.kind == documentTool(begun.name):
		s.linkEvent(line, r, id, begun.name, answer)
	}
}

// documentAnswer parses {"action":"link","path":…,"nonce":…} from a result, ignoring any text around it; its kind is 0
// if there is none.
func documentAnswer(p *transcript.RawBlock) fileCall {
	for _, q := range p.Blocks() {
		if q.Kind != transcript.TextBlock || len(q.Text) > 4*maxPath {
			continue
		}
		text := transcript.Unquote(q.Text)
		at := strings.IndexByte(text, '{')
		if at < 0 {
			continue
		}
		var answer struct{ Action, Path, Nonce string }
		err := json.NewDecoder(strings.NewReader(text[at:])).Decode(&answer)
		if err != nil || answer.Path == "" || len(answer.Path) > maxPath || len(answer.Nonce) > maxNonce {
			continue
		}
		switch answer.Action {
		case "link":
			return fileCall{kind: LinkEvent, path: answer.Path, nonce: answer.Nonce}
		case "unlink":
			return fileCall{kind: UnlinkEvent, path: answer.Path, nonce: answer.Nonce}
		}
	}
	return fileCall{}
}

func (s *Fold) fileEvent(kind EventKind, line int64, r *transcript.Record, id, name, path string) {
	e := s.event(kind, line, r)
	e.ToolID, e.ToolName, e.Path = id, name, path
}

func (s *Fold) linkEvent(line int64, r *transcript.Record, id, name string, answer fileCall) {
	e := s.event(answer.kind, line, r)
	e.ToolID, e.ToolName, e.Path, e.Nonce = id, name, answer.path, answer.nonce
}

func (s *Fold) rememberFileCall(c fileCall) {
	if len(s.files) == maxFileCalls {
		s.files = append(s.files[:0], s.files[1:]...)
	}
	s.files = append(s.files, c)
}

func (s *Fold) takeFileCall(id uint64) (c fileCall, ok bool) {
	for i := range s.files {
		if s.files[i].id == id {
			c = s.files[i]
			s.files = append(s.files[:i], s.files[i+1:]...)
			return c, true
		}
	}
	return c, false
}

func (c *fileCall) layout(k *codec) {
	k.fixed(&c.id)
	k.text(&c.name, &c.path, &c.nonce)
	k.byte((*uint8)(&c.kind))
}

// LinkRefused returns the lines under which ccship tells the model, in a language that it speaks, what was not linked.
func LinkRefused() (english, korean string) {
	return "[Document not linked]", "[문서 연결 거부됨]"
}

// refusedLinks looks in what a hook showed the model for files that were not linked, which the model's tool did not
// know.
func (s *Fold) refusedLinks(line int64, r *transcript.Record) {
	if r.Subtype != "hook_additional_context" && r.Subtype != "async_hook_response" {
		return
	}
	refused := false
	english, korean := LinkRefused()
	for text := range strings.SplitSeq(transcript.HookText(r), "\n") {
		item, listed := strings.CutPrefix(text, "- ")
		refused = text == english || text == korean || refused && listed
		if refused && listed {
			s.event(RefusedLinkEvent, line, r).Text = transcript.Cut(item, MaxOutput)
		}
	}
}

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
