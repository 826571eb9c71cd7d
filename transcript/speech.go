package transcript

import (
	"bytes"
	"cmp"
	"strings"
)

// Speaker is who speaks in a record.
type Speaker uint8

const (
	NoSpeaker  Speaker = iota // nobody: context, output, what Claude Code notes
	Person                    // the person at Claude Code
	Channel                   // the person, over a channel such as Telegram
	Peer                      // another session, an agent or a teammate
	Background                // a schedule, a background task, or Claude Code that goes on by itself
)

// Human reports whether the person speaks: only that is a prompt.
func (s Speaker) Human() bool { return s == Person || s == Channel }

// Speech is what a speaker says to the model.
type Speech struct {
	Speaker Speaker
	From    string // "telegram", "session checkout", "teammate tester", "scheduled task"; "" of a Person
	Text    string // without the elements around it; "" for an image without text
}

// Label returns a heading for the speaker.
func (s Speech) Label() string { return SpeakerLabel(s.Speaker, s.From) }

// SpeakerLabel returns the heading for a speaker: "You", "You via telegram", "Message of session checkout", "Scheduled
// task".
func SpeakerLabel(s Speaker, from string) string {
	switch {
	case s == Channel:
		return "You via " + cmp.Or(from, "a channel")
	case s == Peer:
		return "Message of " + cmp.Or(from, "another session")
	case s == Background && from != "":
		return strings.ToUpper(from[:1]) + from[1:]
	case s == Background:
		return "Claude Code"
	}
	return "You"
}

// Names of what speaks in the background.
const (
	scheduledTask  = "scheduled task"
	backgroundTask = "background task"
)

// Speech returns what the record says to the model in a speaker's name; its Speaker is NoSpeaker if it says nothing.
// What the record states of its origin goes before what the text looks like. Answers to questions, and words with which
// the person rejects a tool, are Replies.
func (r *Record) Speech() Speech {
	if r.CompactSummary || r.VisibleOnly || r.Companion {
		return Speech{}
	}
	switch {
	case r.Type == "attachment":
		if r.Subtype != "queued_command" || r.Text == "" || r.Queued != "prompt" && r.Queued != "task-notification" {
			return Speech{}
		}
		return r.spoken(r.Text)
	case r.Type != "user" || r.Message == nil:
		return Speech{}
	}
	text, pictures, results := r.Message.typedText()
	if text == "" && (!pictures || results) {
		return Speech{}
	}
	return r.spoken(text)
}

// spoken says who speaks a text.
func (r *Record) spoken(text string) Speech {
	wrapped, isWrapped := unwrap(text)
	switch speaker, from := r.stated(); {
	case speaker == NoSpeaker:
	case !isWrapped || wrapped.Speaker != speaker && speaker != Background:
		return Speech{speaker, from, text}
	case wrapped.Speaker != speaker:
		return Speech{speaker, from, wrapped.Text}
	default:
		return Speech{speaker, cmp.Or(wrapped.From, from), wrapped.Text}
	}
	if name, args, ok := command(text); ok && strings.HasPrefix(text, commandMessage) && !r.Meta && !r.Sidechain {
		return Speech{Person, "", strings.TrimSpace("/" + name + " " + args)}
	}
	// The desktop app says "human" of what its schedule sends, too.
	sure := r.PromptSource == "typed" || r.Origin == "human" && !strings.HasPrefix(text, "<scheduled-task ")
	switch {
	case fromProgramOnly(text), !sure && strings.HasPrefix(text, interruption):
		return Speech{}
	case !sure && isWrapped:
		return wrapped
	case r.Meta:
		return Speech{}
	case r.Sidechain:
		return Speech{Peer, "the session", text}
	}
	return Speech{Person, "", text}
}

// stated is who speaks by the record's own statement; NoSpeaker when it is a person, or nothing is stated. What is not
// known to be a person is never taken for one.
func (r *Record) stated() (speaker Speaker, from string) {
	kind := r.Origin
	if kind == "" {
		kind = strings.ReplaceAll(r.TurnOrigin, "_", "-")
	}
	switch {
	case r.Scheduled:
		return Background, scheduledTask
	case kind == "human" || kind == "sdk" || kind == "unknown" || r.FromPlan && r.PromptSource != "system":
		return NoSpeaker, ""
	case kind == "scheduled" || kind == "task-notification" && r.OriginName == "scheduled-trigger":
		return Background, scheduledTask
	case kind == "channel":
		return Channel, channelName(r.OriginName)
	case kind == "voice-call":
		return Channel, "phone"
	case kind == "peer", kind == "task-notification" && r.OriginName == "peer-send-message":
		return Peer, named("session", r.OriginName)
	case kind == "coordinator", kind == "observer", kind == "agent", kind == "teammate":
		return Peer, named(kind, r.OriginName)
	case kind == "slack-ping":
		return Peer, "Slack"
	case kind == "task-notification" || r.Queued == "task-notification":
		return Background, backgroundTask
	case kind != "":
		return Background, strings.ReplaceAll(kind, "-", " ")
	case r.PromptSource == "system":
		return Background, ""
	}
	return NoSpeaker, ""
}

// named returns what a speaker is and its name, if it has one that people read.
func named(what, name string) string {
	if name == "" || strings.ContainsAny(name, "/:-") && what == "session" && len(name) > 24 ||
		name == "peer-send-message" {
		return "another " + what
	}
	return what + " " + OneLine(name, 80)
}

// channelName shortens "plugin:telegram:telegram" to "telegram".
func channelName(source string) string {
	return OneLine(source[strings.LastIndexByte(source, ':')+1:], 40)
}

// envelope is an element in which Claude Code hands the model what others than the person say.
type envelope struct {
	name    string
	speaker Speaker
	what    string
	names   []string // attributes that name the speaker, the best one first
}

var envelopes = []envelope{
	{"teammate-message", Peer, "teammate", []string{"teammate_id"}},
	{"cross-session-message", Peer, "session", []string{"name", "from-name", "from"}},
	{"agent-message", Peer, "agent", []string{"from"}},
	{"coordinator-relay", Peer, "coordinator", []string{"from"}},
	{"channel", Channel, "", []string{"source", "name", "server"}},
	{"task-notification", Background, backgroundTask, nil},
	{"agent-notification", Background, backgroundTask, nil},
	{"bash-notification", Background, backgroundTask, nil},
	{"github-webhook-activity", Background, "webhook", nil},
	{"mcp-resource-update", Background, "MCP server", []string{"server"}},
	{"mcp-polling-update", Background, "MCP server", []string{"server"}},
	{"tick", Background, scheduledTask, nil},
	{"scheduled-task", Background, scheduledTask, []string{"name"}},
}

// frames are lines that Claude Code writes before such an element.
var frames = []struct {
	begin   string
	end     string // of what is written before, in the first line
	speaker Speaker
	from    string
}{
	{"Another Claude session sent a message", "\n", Peer, "another session"},
	{"A peer session sent a message while you were working:", "\n", Peer, "another session"},
	{"The coordinator sent a message while you were working:", "\n", Peer, "coordinator"},
	{"[SYSTEM NOTIFICATION", "]", Background, backgroundTask},
}

// unwrap takes what others than the person say out of the elements and lines around it. ok is false for other texts.
func unwrap(text string) (s Speech, ok bool) {
	for _, f := range frames {
		rest, found := strings.CutPrefix(text, f.begin)
		if !found {
			continue
		}
		begin, after, found := strings.Cut(rest, f.end)
		if found && !strings.HasPrefix(rest, "<") && !strings.Contains(begin, "\n") {
			rest = after
		}
		if at := strings.Index(rest, "\n<"); at >= 0 && f.speaker == Background { // behind words about it
			if inner, ok := elements(rest[at:]); ok {
				return inner, true
			}
		}
		if inner, ok := elements(rest); ok {
			return inner, true
		}
		return Speech{f.speaker, f.from, strings.TrimSpace(rest)}, true
	}
	if isTask(text) {
		task := []byte(text)
		return Speech{Background, backgroundTask,
			cmp.Or(StringField(task, "description"), StringField(task, "summary"), StringField(task, "task_id"), "task")}, true
	}
	if isNotice(text) {
		notice := []byte(text)
		return Speech{Background, "", cmp.Or(StringField(notice, "summary"), StringField(notice, "message"),
			StringField(notice, "systemMessage"), strings.ReplaceAll(StringField(notice, "type"), "_", " "), "hook")}, true
	}
	return elements(text)
}

// isNotice reports whether a text is the JSON of a notice between programs: an object with a type in snake case, as
// idle_notification and task_assignment, or what a hook gets or answers. No person types one.
func isNotice(text string) bool {
	if !strings.HasPrefix(text, "{") || Scan([]byte(text)).Shape != Object {
		return false
	}
	for _, name := range []string{"hook_event_name", "hookSpecificOutput", "systemMessage"} {
		if field([]byte(text), name) != nil {
			return true
		}
	}
	kind := StringField([]byte(text), "type")
	return strings.Contains(kind, "_") && strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// isTask reports whether a text is the JSON of a background task, as Claude Code 2.1.45 to 2.1.50 queued it.
func isTask(text string) bool {
	if !strings.HasPrefix(text, "{") || !strings.Contains(text, `"task_id"`) || Scan([]byte(text)).Shape != Object {
		return false
	}
	return field([]byte(text), "task_id") != nil
}

// elements takes the text out of an element and of those that follow it. The first one says who speaks.
func elements(text string) (s Speech, ok bool) {
	var bodies []string
	for e, inner, attributes, rest := element(text); e != nil; e, inner, attributes, rest = element(rest) {
		if !ok {
			s, ok = Speech{Speaker: e.speaker, From: e.from(attributes)}, true
		}
		bodies = append(bodies, e.body(inner))
	}
	s.Text = strings.Join(bodies, "\n")
	return s, ok
}

// element cuts the element off with which a text begins; nil if it begins otherwise.
func element(text string) (e *envelope, inner, attributes, rest string) {
	for i := range envelopes {
		e = &envelopes[i]
		inner, attributes, rest, found := e.cut(text)
		if found && (e.speaker != Channel || e.from(attributes) != "") {
			return e, inner, attributes, rest
		}
	}
	return nil, "", "", ""
}

// cut takes an element off the beginning of a text.
func (e *envelope) cut(text string) (inner, attributes, rest string, ok bool) {
	after, ok := strings.CutPrefix(strings.TrimLeft(text, " \t\r\n"), "<"+e.name)
	if !ok || after == "" || !strings.Contains("> \t\r\n", after[:1]) {
		return "", "", "", false
	}
	attributes, after, ok = strings.Cut(after, ">")
	if !ok {
		return "", "", "", false
	}
	inner, rest, _ = strings.Cut(after, "</"+e.name+">")
	return inner, attributes, rest, true
}

func (e *envelope) from(attributes string) string {
	for _, name := range e.names {
		value := attribute(attributes, name)
		switch {
		case value == "":
		case e.speaker == Channel:
			return channelName(value)
		default:
			return named(e.what, value)
		}
	}
	if e.speaker == Peer {
		return "another " + e.what
	}
	return e.what
}

// handback is the end of the line before an agent's report, every line of which is indented.
const handback = "The report follows:\n"

// body returns the text of an element for people.
func (e *envelope) body(inner string) string {
	inner = strings.TrimSpace(inner)
	switch {
	case e.speaker == Background:
		text := Element(inner, "summary")
		for _, name := range []string{"event", "result"} {
			if more := WithoutToolsUsed(Element(inner, name)); more != "" {
				text = strings.TrimSpace(text + "\n\n" + more)
			}
		}
		if id := Element(inner, "task-id"); text == "" && id != "" {
			text = strings.TrimSpace("task " + id + " " + Element(inner, "status"))
		}
		return cmp.Or(text, inner)
	case strings.HasPrefix(inner, `{"type":"`) && Scan([]byte(inner)).Shape == Object:
		return mailText([]byte(inner))
	}
	if before, report, found := strings.Cut(inner, handback); found && e.name == "agent-message" {
		before = before[:strings.LastIndexByte(before, '\n')+1]
		report = WithoutToolsUsed(strings.TrimSpace(strings.ReplaceAll("\n"+report, "\n  ", "\n")))
		return strings.TrimSpace(before + report)
	}
	return inner
}

// mailText returns a notice between teammates in words: {"type":"idle_notification","idleReason":"available",…}.
func mailText(notice []byte) string {
	words := strings.ReplaceAll(StringField(notice, "type"), "_", " ")
	for _, name := range []string{"message", "summary", "content", "reason", "idleReason", "subject"} {
		if text := StringField(notice, name); text != "" {
			return words + ": " + text
		}
	}
	return words
}

// toolsUsed is the element that Claude Code 2.1.332 puts before what an agent reports.
const toolsUsed = "tools-used-before-summary"

// WithoutToolsUsed returns a report without the list of tools before it.
func WithoutToolsUsed(text string) string {
	rest, found := strings.CutPrefix(strings.TrimLeft(text, " \n"), "<"+toolsUsed+">")
	if !found {
		return text
	}
	_, report, found := strings.Cut(rest, "</"+toolsUsed+">")
	if !found {
		return text
	}
	return strings.TrimLeft(report, "\r\n ")
}

// skipToolsUsed returns the same for the contents of a JSON string.
func skipToolsUsed(raw []byte) []byte {
	if !bytes.HasPrefix(raw, []byte("<"+toolsUsed+">")) {
		return raw
	}
	_, report, found := bytes.Cut(raw, []byte("</"+toolsUsed+">"))
	if !found {
		return raw
	}
	for bytes.HasPrefix(report, []byte(`\n`)) {
		report = report[2:]
	}
	return report
}

// AgentEnd names an agent that has ended: by the call that started it, or by its own id.
type AgentEnd struct{ ToolID, AgentID string }

// AgentEndOf returns the agent whose end a text reports: a notice of a background task, or an agent's hand-back.
func AgentEndOf(text string) (end AgentEnd, ok bool) {
	if _, after, found := strings.Cut(text, `<agent-message`); found && strings.Contains(after, "[Subagent hand-back]") {
		attributes, _, _ := strings.Cut(after, ">")
		end.AgentID = attribute(attributes, "from")
		return end, end.AgentID != ""
	}
	switch {
	case strings.Contains(text, "<task-notification>"):
		end = AgentEnd{Element(text, "tool-use-id"), Element(text, "task-id")}
		status := Element(text, "status")
		return end, status != "" && status != "running"
	case strings.HasPrefix(text, "<agent-notification>"):
		end.AgentID = Element(text, "agent-id")
		return end, Element(text, "status") != "running"
	}
	return end, false
}
