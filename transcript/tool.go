package transcript

import (
	"bytes"
	"encoding/json"
	"path"
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

// resultMembers are the members of a result's content that people read. What is encrypted, or says what kind of thing
// the content is, is not among them.
var resultMembers = map[string]string{
	"text": "", "title": "", "url": "", "stdout": "", "stderr": "", "error_code": "error: ", "tool_name": "",
	"error_message": "", "content": "", "lines": "", "source": "", "tool_references": "", "data": "", "context": "",
}

// resultText returns the text of a block of a tool's result whose type is not one of a message's: a web search, a page,
// an advice, the output of a program on the server, an error.
func (p *RawBlock) resultText(limit int) string {
	if p.Kind != OtherBlock ||
		!strings.Contains(string(p.Type), "result") && !strings.HasSuffix(string(p.Type), "reference") {
		return ""
	}
	var out strings.Builder
	appendResult(&out, p.Raw, limit, 0)
	return strings.TrimSpace(out.String())
}

func appendResult(out *strings.Builder, value []byte, limit, depth int) {
	if len(value) == 0 || depth > 2*maxNesting || out.Len() > limit*4 {
		return
	}
	w := walkerOf(value)
	switch value[0] {
	case '"':
		if s := strings.TrimSpace(CutEscaped(stringContents(value), limit)); s != "" {
			out.WriteString(s)
			out.WriteByte('\n')
		}
	case '[':
		for w.skipComma(); w.i < len(w.b) && w.b[w.i] != ']'; w.skipComma() {
			element := w.value(w.i)
			if len(element) == 0 {
				return
			}
			appendResult(out, element, limit, depth+1)
		}
	case '{':
		if bytes.Equal(stringContents(field(value, "type")), []byte("base64")) {
			return
		}
		for key, member, ok := w.member(); ok; key, member, ok = w.member() {
			if before, read := resultMembers[string(key)]; read {
				out.WriteString(before)
				appendResult(out, member, limit, depth+1)
			}
		}
	}
}

// Permissions Claude Code asks for. What it does without asking is documented at
// https://code.claude.com/docs/en/permissions: reading and searching below the working directory, and in the mode
// acceptEdits also editing there. Rules of the user may allow or forbid more; no transcript has them.

// MayAsk reports whether Claude Code may ask its user before a tool call. mode is that of permissions, path the file or
// folder that the call is about; "" is none.
func MayAsk(mode, tool, path, cwd string) bool {
	switch mode {
	case "bypassPermissions", "dontAsk":
		return false
	}
	switch tool {
	case "TodoWrite", "BashOutput", "TaskOutput", "ToolSearch", "TaskCreate", "TaskUpdate", "TaskGet", "TaskList",
		// These run at the API.
		"advisor", "web_search", "web_fetch", "code_execution", "bash_code_execution", "text_editor_code_execution":
		return false
	case "Read", "NotebookRead", "Glob", "Grep", "LS":
		return !below(path, cwd)
	case "Edit", "MultiEdit", "Write", "NotebookEdit":
		return mode != "acceptEdits" || path == "" || !below(path, cwd)
	}
	return true
}

// below reports whether a path is in a folder. A relative one is.
func below(path, folder string) bool {
	path, folder = strings.ReplaceAll(path, `\`, "/"), strings.TrimRight(strings.ReplaceAll(folder, `\`, "/"), "/")
	for part := range strings.SplitSeq(path, "/") {
		if part == ".." {
			return false
		}
	}
	rest, in := strings.CutPrefix(path, folder)
	absolute := strings.HasPrefix(path, "/") || strings.HasPrefix(path, "~") || len(path) > 2 && path[1] == ':'
	return !absolute || folder != "" && in && (rest == "" || rest[0] == '/')
}

// FolderName returns the last element of a folder's path, of Windows or not, whatever system this is; the path itself
// of a root.
func FolderName(dir string) string {
	if name := path.Base(slashed(dir)); name != "/" && name != "." {
		return name
	}
	return dir
}

// RepositoryOf returns the folder that a working directory belongs to: itself, or for one in a worktree that Claude
// Code made the repository.
func RepositoryOf(cwd string) string {
	if i := strings.Index(slashed(cwd), "/.claude/worktrees/"); i >= 0 {
		return cwd[:i]
	}
	return cwd
}

// slashed returns a path with slashes, if it begins as paths of Windows do.
func slashed(p string) string {
	drive := len(p) > 2 && p[1] == ':' && (p[2] == '\\' || p[2] == '/') && ('a' <= p[0]|0x20 && p[0]|0x20 <= 'z')
	if drive || strings.HasPrefix(p, `\\`) {
		return strings.ReplaceAll(p, `\`, "/")
	}
	return p
}
