//go:build unix

package claude_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// kind says who asks: the conversation itself, or Claude Code on its own account.
type kind string

const (
	conversation kind = "conversation"
	compaction   kind = "compaction"
	notification kind = "notification" // a subagent in the background has ended
	suggestion   kind = "suggestion"
	recap        kind = "recap"
	quota        kind = "quota"
	side         kind = "side" // titles, warm-ups, structured questions
	counting     kind = "counting"
)

// script is what the model says to prompts that contain when: one answer, and one more after each round of tool
// results. Answers beyond the last are "Done."
type script struct {
	when string
	says []answer
}

// answer is one message of the model, or an error in its place.
type answer struct {
	thinking, text string
	tools          []call
	used           int // tokens of the context that it claims; 0: a small part of the request's size
	status         int // HTTP status to fail with, once: the retry gets the message
}

// call is one tool call.
type call struct {
	name  string
	input json.RawMessage
	id    string // given by the stub
}

// place is where a script goes on.
type place struct{ script, step int }

// nowhere is the place of calls that no script made.
const nowhere = -1

// marks are sentences by which Claude Code's own requests are known. Where the tool results are, the conversation
// goes on whatever the text next to them says; only a compaction may cut in there.
var marks = []struct {
	kind kind
	text string
	says string
}{
	{compaction, "create a detailed summary of", "<analysis>Nothing to add.</analysis>\n<summary>The user made sure that every line arrives.</summary>"},
	{suggestion, "[SUGGESTION MODE", ""},
	{recap, "The user stepped away", ""},
	{notification, "<task-notification>", "Noted."},
}

// notPrompts begin texts that Claude Code puts next to the prompt.
var notPrompts = []string{"<system-reminder>", "This session is being continued from", "Your response above was cut off", "<local-command", "<command-name>"}

// answer decides what the model says.
func (s *stub) answer(req *request) (kind, answer) {
	said := lastWords(req.Messages)
	all := strings.Join(said.texts, "\n")
	for _, m := range marks {
		if strings.Contains(all, m.text) && (len(said.results) == 0 || m.kind == compaction) {
			return m.kind, answer{text: m.says}
		}
	}
	schema := req.OutputConfig.Format.Schema
	if schema == nil {
		schema = req.OutputFormat.Schema
	}
	forced := slices.IndexFunc(req.Tools, func(t tool) bool { return req.ToolChoice.Name != "" && t.Name == req.ToolChoice.Name })
	switch {
	case req.MaxTokens == 1:
		return quota, answer{text: "ok"}
	case forced >= 0:
		t := req.Tools[forced]
		return side, answer{tools: []call{{name: t.Name, input: fitting(t.Schema), id: newID("toolu_")}}}
	case schema != nil && len(said.results) == 0:
		return side, answer{text: string(fitting(schema))}
	case len(req.Tools) == 0:
		return side, answer{text: "A session"}
	}
	return conversation, s.turn(req, said)
}

// turn is the conversation's next message: the script's, else what the prompt itself asks for.
func (s *stub) turn(req *request, said words) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := place{nowhere, 1}
	if len(said.results) == 0 {
		at.step = 0
		at.script = slices.IndexFunc(s.scripts, func(c script) bool { return strings.Contains(said.prompt(), c.when) })
	} else if p, known := s.places[said.results[0]]; known {
		at = p
	}
	a := answer{text: "Done."}
	switch {
	case at.script == nowhere && at.step == 0:
		a = obey(said.prompt())
	case at.script != nowhere && at.step < len(s.scripts[at.script].says):
		a = s.scripts[at.script].says[at.step]
	}
	if a.status != 0 {
		if name := fmt.Sprint(at); s.failed[name] {
			a.status = 0
		} else {
			s.failed[name] = true
			return a
		}
	}
	a.tools = slices.Clone(a.tools)
	for i := range a.tools {
		a.tools[i].name = available(a.tools[i].name, req.Tools)
		a.tools[i].input = withPlanFile(a.tools[i].input, req.Messages)
	}
	return a.leadingTo(place{at.script, at.step + 1}, s)
}

// leadingTo gives the tool calls ids that lead back to where the script goes on: subagents, forks and sessions side
// by side each go on with their own.
func (a answer) leadingTo(next place, s *stub) answer {
	for i := range a.tools {
		a.tools[i].id = newID("toolu_")
		s.places[a.tools[i].id] = next
	}
	return a
}

// available is the name a version has for a tool: what starts a subagent was called Task, and later Agent.
func available(name string, tools []tool) string {
	has := func(name string) bool { return slices.ContainsFunc(tools, func(t tool) bool { return t.Name == name }) }
	if name == "Task" && !has("Task") && has("Agent") {
		return "Agent"
	}
	return name
}

var order = regexp.MustCompile(`(?m)^@(\S+) (\{.*\})\s*$`)

// obey calls the tools that a prompt names, one on a line: @Tool {"its":"input"}. Any other prompt is echoed.
func obey(prompt string) answer {
	var a answer
	for _, m := range order.FindAllStringSubmatch(prompt, -1) {
		a.tools = append(a.tools, call{name: m[1], input: json.RawMessage(m[2])})
	}
	if a.tools == nil {
		prompt = strings.TrimSpace(prompt)
		a.text = "You said: " + strings.ToValidUTF8(prompt[max(0, len(prompt)-200):], "")
	}
	return a
}

// words is what the user's side said after the model's last message.
type words struct {
	texts   []string
	results []string // ids of the tool calls that were answered
}

// prompt is what the person typed of it.
func (w words) prompt() string {
	var own []string
	for _, text := range w.texts {
		trimmed := strings.TrimLeft(text, " \n")
		if !slices.ContainsFunc(notPrompts, func(p string) bool { return strings.HasPrefix(trimmed, p) }) {
			own = append(own, text)
		}
	}
	return strings.Join(own, "\n")
}

func lastWords(messages []message) words {
	start := len(messages)
	for start > 0 && messages[start-1].Role != "assistant" {
		start--
	}
	var w words
	for _, m := range messages[start:] {
		if m.Role != "user" { // "system" messages stand among them
			continue
		}
		for _, b := range m.blocks() {
			switch b.Type {
			case "text":
				w.texts = append(w.texts, b.Text)
			case "tool_result":
				w.results = append(w.results, b.ToolUseID)
			}
		}
		if slices.ContainsFunc(w.texts, func(s string) bool { return strings.HasPrefix(s, "[Request interrupted") }) {
			w.results = nil
		}
	}
	return w
}

// fitting is the smallest value that fits a JSON schema.
func fitting(schema json.RawMessage) json.RawMessage {
	var s struct {
		Type       any                        `json:"type"`
		Const      json.RawMessage            `json:"const"`
		Enum       []json.RawMessage          `json:"enum"`
		Required   []string                   `json:"required"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return json.RawMessage(`""`)
	}
	switch {
	case s.Const != nil:
		return s.Const
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.Type == "object" || s.Properties != nil:
		members := make([]string, len(s.Required))
		for i, name := range s.Required {
			members[i] = fmt.Sprintf("%q:%s", name, fitting(s.Properties[name]))
		}
		return json.RawMessage("{" + strings.Join(members, ",") + "}")
	}
	switch s.Type {
	case "array":
		return json.RawMessage("[]")
	case "boolean":
		return json.RawMessage("false")
	case "integer", "number":
		return json.RawMessage("0")
	}
	return json.RawMessage(`"A session"`)
}
