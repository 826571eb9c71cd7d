package transcript

import "strings"

// Prompt is what a human typed, in whatever form the line holds it: a user record, one with a tool result beside it,
// or a queued command. ok is false for everything that the program or an agent wrote. text is "" for a lone image.
// Prompts that exist only as queue operations take a session.Fold to find.
func (r *Record) Prompt() (text string, ok bool) {
	if r.Sidechain || r.Meta || r.CompactSummary || r.VisibleOnly {
		return "", false
	}
	switch {
	case r.Type == "attachment":
		ok = r.Queued == "prompt" && !made(r.Origin) && !FromProgram(r.Text)
		return r.Text, ok && r.Text != ""
	case r.Type != "user" || r.Message == nil || made(r.Origin) || r.PromptSource == "system":
		return "", false
	}
	text, pictures, results := r.Message.spoken()
	switch {
	case text == "" && (!pictures || results):
		return "", false
	case strings.HasPrefix(text, commandMessage):
		if name, args, ok := command(text); ok {
			return strings.TrimSpace("/" + name + " " + args), true
		}
	}
	sure := r.PromptSource == "typed" || r.PromptSource == "queued" || r.Origin == "human"
	if program(text) || !sure && FromProgram(text) {
		return "", false
	}
	return text, true
}

// made says whether an origin names something else than a human.
func made(origin string) bool { return origin != "" && origin != "human" }

const (
	commandName    = "<command-name>"
	commandMessage = "<command-message>"
	interruption   = "[Request interrupted"
)

// program says whether text is in a form that only the program writes, even for what a human began.
func program(text string) bool {
	for _, mark := range []string{commandName, "<local-command-", "<bash-"} {
		if strings.HasPrefix(text, mark) {
			return true
		}
	}
	return false
}

// FromProgram reports whether text looks like something Claude Code wrote rather than a human. A record that says it was
// typed (PromptSource) overrides it.
func FromProgram(text string) bool {
	return program(text) || strings.HasPrefix(text, "<task-notification>") || strings.HasPrefix(text, interruption)
}

// spoken is the text of a user message without what the program puts beside it. results says whether it answers a
// tool call, pictures whether it shows something.
func (m *Message) spoken() (said string, pictures, results bool) {
	var all []string
	for i := range m.pieces {
		p := &m.pieces[i]
		switch p.Kind {
		case ToolResultBlock:
			results = true
		case ImageBlock, DocumentBlock:
			pictures = true
		case TextBlock:
			if t := strings.TrimSpace(Unquote(p.Text)); t != "" && !beside(t) {
				all = append(all, t)
			}
		}
	}
	return strings.Join(all, "\n"), pictures, results
}

// beside says whether a text block is context that the editor or the program added to what was typed.
func beside(text string) bool {
	return strings.HasPrefix(text, "<ide_") || strings.HasPrefix(text, "<system-reminder>")
}

// Command is a slash command the record stands for: a built-in one, or one that expands to a prompt. name has no
// slash.
func (r *Record) Command() (name, args string, ok bool) {
	if r.Type == "system" && r.Subtype == "local_command" {
		return command(strings.TrimSpace(r.Text))
	}
	if r.Type != "user" || r.Message == nil || r.Meta || r.Sidechain {
		return "", "", false
	}
	text, _, _ := r.Message.spoken()
	return command(text)
}

func command(text string) (name, args string, ok bool) {
	if !strings.HasPrefix(text, commandName) && !strings.HasPrefix(text, commandMessage) {
		return "", "", false
	}
	name = strings.TrimPrefix(Element(text, "command-name"), "/")
	if name == "" {
		name = Element(text, "command-message")
	}
	return name, Element(text, "command-args"), name != ""
}

// Element is the trimmed text between <name> and </name>, "" when there is none. Claude Code puts commands and task
// notifications into messages in this form.
func Element(text, name string) string {
	_, rest, found := strings.Cut(text, "<"+name+">")
	if !found {
		return ""
	}
	inner, _, _ := strings.Cut(rest, "</"+name+">")
	return strings.TrimSpace(inner)
}

// Interrupted says whether the record notes that the user stopped the model.
func (r *Record) Interrupted() bool {
	if r.Type != "user" || r.Message == nil || r.Meta || r.PromptSource == "typed" || r.Origin == "human" {
		return false
	}
	for i := range r.Message.pieces {
		p := &r.Message.pieces[i]
		if p.Kind == TextBlock && strings.HasPrefix(string(p.Text[:min(len(p.Text), len(interruption))]), interruption) {
			return true
		}
	}
	return false
}

// Preview is the record in one line of at most 200 characters, for lists.
func (r *Record) Preview() string { return OneLine(r.preview(), previewSize) }

const previewSize = 200

// ImageOnly stands for a prompt without text.
const ImageOnly = "[image]"

func (r *Record) preview() string {
	if text, ok := r.Prompt(); ok {
		if text == "" {
			return ImageOnly
		}
		return text
	}
	if name, args, ok := r.Command(); ok {
		return "/" + name + " " + args
	}
	switch {
	case r.Message != nil:
		return r.Message.preview()
	case r.Title != "":
		return r.Title
	case r.Compact != nil:
		return "Conversation compacted"
	case r.Error != "":
		return r.Error
	case r.Text != "":
		return r.Text
	case r.Subtype != "":
		return r.Type + " " + r.Subtype
	}
	return r.Type
}

// preview is the first thing in a message that can be said in a line.
func (m *Message) preview() string {
	var other string
	for i := range m.pieces {
		p := &m.pieces[i]
		switch p.Kind {
		case TextBlock:
			if t := CutEscaped(p.Text, 4*previewSize); strings.TrimSpace(t) != "" {
				return t
			}
		case ToolUseBlock:
			name := Unquote(p.Name)
			return name + " " + ToolSummary(name, p.Input, previewSize)
		case ToolResultBlock:
			return p.Output(previewSize)
		case ThinkingBlock:
			if other = CutEscaped(p.Text, previewSize); other == "" {
				other = "[thinking]"
			}
		case ImageBlock:
			other = "[image]"
		case DocumentBlock:
			other = "[document]"
		}
	}
	return other
}
