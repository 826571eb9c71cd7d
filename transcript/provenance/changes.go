package provenance

import (
	"strings"

	"github.com/ccship/ccship/transcript"
)

// change is a text that a call puts into a file instead of another.
type change struct{ path, before, after string }

// changesOf returns the changes that a call asks for.
func changesOf(tool string, input []byte) (out []change) {
	c := change{path: slashes(transcript.ToolPath(tool, input))}
	switch tool {
	case "Edit":
		c.before, c.after = transcript.StringField(input, "old_string"), transcript.StringField(input, "new_string")
	case "MultiEdit":
		for e := range transcript.Elements(transcript.Member(input, "edits")) {
			c.before += "\n" + transcript.StringField(e, "old_string")
			c.after += "\n" + transcript.StringField(e, "new_string")
		}
	case "Write":
		c.after = transcript.StringField(input, "content")
	case "NotebookEdit":
		c.after = transcript.StringField(input, "new_source")
	case "Bash":
		for _, h := range heredocs(transcript.StringField(input, "command")) {
			out = append(out, change{path: h.path, after: h.text})
		}
		return out
	default:
		return nil
	}
	return []change{c}
}

// addedBy returns the lines of a text that another one does not have.
func addedBy(before, after string) []Sum {
	if before == "" {
		return added(nil, strings.Split(after, "\n"))
	}
	return added(strings.Split(before, "\n"), strings.Split(after, "\n"))
}

func added(before, after []string) (out []Sum) {
	for len(before) > 0 && len(after) > 0 && before[0] == after[0] {
		before, after = before[1:], after[1:]
	}
	for len(before) > 0 && len(after) > 0 && before[len(before)-1] == after[len(after)-1] {
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	had := make(map[string]int, len(before))
	var text []byte
	for _, line := range before {
		text, _ = normalised(text[:0], line)
		had[string(text)]++
	}
	for _, line := range after {
		line = strings.TrimRight(line, "\r")
		if text, _ = normalised(text[:0], line); len(text) == 0 {
			continue
		}
		if n := had[string(text)]; n > 0 {
			had[string(text)] = n - 1
			continue
		}
		if out = append(out, sumOf(line, text)); len(out) == maxLines {
			break
		}
	}
	return out
}

// patched returns the lines that the result of a call says it added to its file.
func patched(result []byte) (out []Sum, ok bool) {
	var before, after []string
	for hunk := range transcript.Elements(transcript.Member(result, "structuredPatch")) {
		ok = true
		for raw := range transcript.Elements(transcript.Member(hunk, "lines")) {
			switch line := transcript.StringOf(raw); {
			case strings.HasPrefix(line, "-"):
				before = append(before, line[1:])
			case strings.HasPrefix(line, "+"):
				after = append(after, line[1:])
			}
		}
	}
	return added(before, after), ok
}
