package transcript

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	commandName    = "<command-name>"
	commandMessage = "<command-message>"
	interruption   = "[Request interrupted"
)

// fromProgramOnly reports whether text has a form that only Claude Code writes, even for what a human started.
func fromProgramOnly(text string) bool {
	for _, mark := range []string{commandName, "<local-command-", "<bash-"} {
		if strings.HasPrefix(text, mark) {
			return true
		}
	}
	return false
}

// QueuedSpeech is who speaks a text of which only the queue is known.
func QueuedSpeech(text string) Speech {
	if fromProgramOnly(text) || strings.HasPrefix(text, interruption) {
		return Speech{}
	}
	if s, ok := unwrap(text); ok {
		return s
	}
	return Speech{Person, "", text}
}

// typedText returns the text of a user message without the context that Claude Code adds. results reports whether it
// answers a tool call, pictures whether it contains images or documents.
func (m *Message) typedText() (said string, pictures, results bool) {
	var all []string
	for i := range m.blocks {
		p := &m.blocks[i]
		switch p.Kind {
		case ToolResultBlock:
			results = true
		case ImageBlock, DocumentBlock:
			pictures = true
		case TextBlock:
			if t := withoutContext(Unquote(p.Text)); t != "" {
				all = append(all, t)
			}
		}
	}
	return strings.Join(all, "\n"), pictures, results
}

// WithImages returns a prompt's text with a placeholder for an image that the text does not name. Old versions of
// Claude Code leave the image out of the text; newer ones write "[Image #1]". An empty text stays empty.
func (r *Record) WithImages(text string) string {
	if text == "" || r.Message == nil || strings.Contains(text, "[Image #") {
		return text
	}
	for i := range r.Message.blocks {
		if r.Message.blocks[i].Kind == ImageBlock {
			return text + " " + ImageOnly
		}
	}
	return text
}

// withoutContext takes off what an editor or Claude Code put before what was typed: elements of context.
func withoutContext(text string) string {
	for text = strings.TrimSpace(text); strings.HasPrefix(text, "<ide_") || strings.HasPrefix(text, "<system-reminder>"); {
		name := text[1:cmp.Or(max(strings.IndexAny(text, "> \n"), 0), len(text))]
		_, rest, _ := strings.Cut(text, "</"+name+">")
		text = strings.TrimSpace(rest)
	}
	return text
}

// Command returns the slash command that the record stands for: a built-in one, or one that expands to a prompt. name
// has no slash.
func (r *Record) Command() (name, args string, ok bool) {
	if r.Type == "system" && r.Subtype == "local_command" {
		return command(strings.TrimSpace(r.Text))
	}
	if r.Type != "user" || r.Message == nil || r.Meta || r.Sidechain {
		return "", "", false
	}
	text, _, _ := r.Message.typedText()
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

// Element returns the trimmed text between <name> and </name>, "" if there is none. Claude Code writes commands and
// task notifications in this form.
func Element(text, name string) string {
	_, rest, found := strings.Cut(text, "<"+name+">")
	if !found {
		return ""
	}
	inner, _, _ := strings.Cut(rest, "</"+name+">")
	return strings.TrimSpace(inner)
}

// attribute returns the value of an attribute of an element; "" if it has none.
func attribute(attributes, name string) string {
	var value string
	for _, quote := range []string{`"`, "'"} {
		_, rest, found := strings.Cut(" "+strings.Join(strings.Fields(attributes), " "), " "+name+"="+quote)
		if value, _, _ = strings.Cut(rest, quote); found {
			break
		}
	}
	return strings.NewReplacer("&quot;", `"`, "&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(value)
}

// Interrupted reports whether the record notes that the user interrupted the model.
func (r *Record) Interrupted() bool {
	if r.Type != "user" || r.Message == nil || r.Meta || r.PromptSource == "typed" || r.Origin == "human" {
		return false
	}
	for i := range r.Message.blocks {
		p := &r.Message.blocks[i]
		if p.Kind == TextBlock && strings.HasPrefix(string(p.Text[:min(len(p.Text), len(interruption))]), interruption) {
			return true
		}
	}
	return false
}

// Preview returns the record on one line of at most 200 characters, for lists.
func (r *Record) Preview() string { return OneLine(r.preview(), previewSize) }

const previewSize = 200

// ImageOnly stands for an image in a prompt, and for a whole prompt without text.
const ImageOnly = "[image]"

func (r *Record) preview() string {
	if s := r.Speech(); s.Speaker != NoSpeaker {
		return cmp.Or(s.Text, ImageOnly)
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

// preview returns the first part of a message that fits on a line.
func (m *Message) preview() string {
	var other string
	for i := range m.blocks {
		p := &m.blocks[i]
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

// Unquote decodes the contents of a JSON string, as Line holds them. A lone surrogate, which UTF-8 cannot express,
// becomes U+FFFD: fine for display and lookups, never for delivery.
func Unquote(raw []byte) string {
	n := bytes.IndexByte(raw, '\\')
	if n < 0 {
		return string(raw)
	}
	var out strings.Builder
	out.Grow(len(raw))
	for n >= 0 && n+1 < len(raw) {
		out.Write(raw[:n])
		raw = raw[n+1:]
		if raw[0] != 'u' {
			out.WriteByte(unescape(raw[0]))
			raw = raw[1:]
		} else {
			r, size := unescapeRune(raw)
			out.WriteRune(r)
			raw = raw[size:]
		}
		n = bytes.IndexByte(raw, '\\')
	}
	out.Write(raw)
	return out.String()
}

func unescape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// unescapeRune decodes uXXXX, and the low surrogate that follows a high one. It returns the character and the bytes
// consumed.
func unescapeRune(raw []byte) (rune, int) {
	high, ok := Hex4(raw)
	if !ok {
		return utf8.RuneError, 1
	}
	if !utf16.IsSurrogate(high) {
		return high, 5
	}
	if len(raw) > 6 && raw[5] == '\\' {
		if low, ok := Hex4(raw[6:]); ok {
			if r := utf16.DecodeRune(high, low); r != utf8.RuneError {
				return r, 11
			}
		}
	}
	return utf8.RuneError, 5
}

// Hex4 parses the number in uXXXX.
func Hex4(raw []byte) (rune, bool) {
	if len(raw) < 5 || raw[0] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range raw[1:5] {
		d := HexDigit(c)
		if d < 0 {
			return 0, false
		}
		r = r<<4 | d
	}
	return r, true
}

// HookText returns what an attachment says that a hook has shown the model; "" if it says nothing of the kind. Claude
// Code writes down what hooks print that it waits for in another way than what others print.
func HookText(r *Record) string {
	var a struct {
		Content  []string `json:"content"`
		Response struct {
			Output struct {
				Context string `json:"additionalContext"`
			} `json:"hookSpecificOutput"`
		} `json:"response"`
	}
	switch r.Subtype {
	case "hook_additional_context", "async_hook_response":
		if json.Unmarshal(r.Attached, &a) == nil {
			return strings.Join(append(a.Content, a.Response.Output.Context), "\n")
		}
	}
	return ""
}
