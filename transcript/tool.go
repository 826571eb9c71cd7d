package transcript

import (
	"encoding/json"
	"strings"
)

// toolMembers returns the members of a tool's input that its summary keeps; nil: all of them.
func toolMembers(name string) []string {
	switch name {
	case "Read", "Edit", "MultiEdit", "Write":
		return []string{"file_path"}
	case "NotebookEdit", "NotebookRead":
		return []string{"notebook_path"}
	case "Bash":
		return []string{"description", "command"}
	case "Glob", "Grep":
		return []string{"pattern", "path"}
	}
	return nil
}

// MaxInput is the default limit, in characters, for each value of a tool's input in a summary.
const MaxInput = 300

// The summary of an unknown tool keeps this many members, and this many bytes of them.
const (
	maxMembers = 24
	maxSummary = 8 << 10
)

// summaryMembers visits the members of an input that its summary keeps.
func summaryMembers(name string, input []byte, visit func(key, value []byte)) {
	if len(input) == 0 || input[0] != '{' {
		return
	}
	if wanted := toolMembers(name); wanted != nil {
		for _, key := range wanted {
			if value := field(input, key); value != nil {
				visit([]byte(key), value)
			}
		}
		return
	}
	size := 0
	w := walkerOf(input)
	for n := 0; n < maxMembers && size < maxSummary; n++ {
		key, value, ok := w.member()
		if !ok {
			return
		}
		visit(key, value)
		size += len(key) + min(len(value), MaxInput)
	}
}

// ToolSummary returns a tool call's input on one line: the path of Read, Edit, Write, NotebookEdit; description and
// first line of Bash; pattern and path of Glob and Grep; the questions of AskUserQuestion; otherwise the values. Each
// is cut at limit characters (0: MaxInput).
func ToolSummary(name string, input []byte, limit int) string {
	if questions := questionsOf(name, input); questions != "" {
		return OneLine(questions, limitOr(limit)+32)
	}
	var parts []string
	summaryMembers(name, input, func(key, value []byte) {
		if s := OneLine(memberText(name, key, value, limit), limitOr(limit)+32); s != "" {
			parts = append(parts, s)
		}
	})
	separator := ", "
	switch name {
	case "Bash":
		separator = ": "
	case "Glob", "Grep":
		separator = " in "
	}
	return strings.Join(parts, separator)
}

// questionsOf returns the questions of a call that asks the user; "" of other calls.
func questionsOf(name string, input []byte) string {
	if name != "AskUserQuestion" {
		return ""
	}
	var all []string
	w := walkerOf(field(input, "questions"))
	for w.skipComma(); w.i < len(w.b) && w.b[w.i] == '{'; w.skipComma() {
		all = append(all, StringField(w.value(w.i), "question"))
	}
	return strings.Join(all, " ")
}

// ToolInput returns what ToolSummary keeps, as a JSON object with the original member names.
func ToolInput(name string, input []byte, limit int) []byte {
	out := []byte{'{'}
	summaryMembers(name, input, func(key, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, '"')
		out = append(out, key...)
		out = append(out, '"', ':')
		if len(value) <= limitOr(limit) && !(name == "Bash" && string(key) == "command") {
			out = append(out, value...)
			return
		}
		out = appendQuoted(out, memberText(name, key, value, limit))
	})
	return append(out, '}')
}

// memberText returns the text of one value.
func memberText(name string, key, value []byte, limit int) string {
	limit = limitOr(limit)
	c := stringContents(value)
	if c == nil {
		return Cut(string(value), limit)
	}
	if name == "Bash" && string(key) == "command" {
		line, _, _ := strings.Cut(strings.TrimLeft(CutEscaped(c, maxSummary), "\r\n\t "), "\n")
		return Cut(strings.TrimRight(line, "\r\t "), limit)
	}
	return CutEscaped(c, limit)
}

func limitOr(limit int) int {
	if limit <= 0 {
		return MaxInput
	}
	return limit
}

func appendQuoted(dst []byte, s string) []byte {
	quoted, err := json.Marshal(s)
	if err != nil {
		return append(dst, `""`...)
	}
	return append(dst, quoted...)
}

// ToolPath returns the file that a tool call works on, as the call names it; "" if none.
func ToolPath(name string, input []byte) string {
	switch name {
	case "Read", "Edit", "MultiEdit", "Write":
		return text(field(input, "file_path"))
	case "NotebookEdit", "NotebookRead":
		return text(field(input, "notebook_path"))
	}
	return ""
}
