package provenance

import (
	"encoding/json"
	"strings"

	"github.com/ccship/ccship/transcript"
)

// change is a text that a call puts into a file instead of another.
type change struct{ path, before, after string }

// changesOf are the changes that a call asks for.
func changesOf(tool string, input []byte) (out []change) {
	switch tool {
	case "Edit", "MultiEdit", "Write", "NotebookEdit":
	case "Bash":
		for _, h := range heredocs(transcript.StringField(input, "command")) {
			out = append(out, change{path: h.path, after: h.text})
		}
		return out
	default:
		return nil
	}
	var x struct {
		Old     string `json:"old_string"`
		New     string `json:"new_string"`
		Content string `json:"content"`
		Source  string `json:"new_source"`
		Edits   []struct {
			Old string `json:"old_string"`
			New string `json:"new_string"`
		} `json:"edits"`
	}
	if json.Unmarshal(input, &x) != nil {
		return nil
	}
	c := change{path: slashes(transcript.ToolPath(tool, input)), before: x.Old, after: x.New + x.Content + x.Source}
	for _, e := range x.Edits {
		c.before, c.after = c.before+"\n"+e.Old, c.after+"\n"+e.New
	}
	return []change{c}
}

// addedBy are the lines of a text that another one does not have.
func addedBy(before, after string) []Sum {
	return added(strings.Split(before, "\n"), strings.Split(after, "\n"))
}

func added(before, after []string) (out []Sum) {
	had := map[string]int{}
	for _, line := range before {
		text, _ := normalised(line)
		had[string(text)]++
	}
	for _, line := range after {
		line = strings.TrimRight(line, "\r")
		text, _ := normalised(line)
		if len(text) == 0 {
			continue
		}
		if had[string(text)] > 0 {
			had[string(text)]--
			continue
		}
		if out = append(out, sumOf(line, text)); len(out) == maxLines {
			break
		}
	}
	return out
}

// patched are the lines that the result of a call says it added to its file.
func patched(result []byte) (out []Sum, ok bool) {
	raw := transcript.Member(result, "structuredPatch")
	var hunks []struct {
		Lines []string `json:"lines"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &hunks) != nil || len(hunks) == 0 {
		return nil, false
	}
	var before, after []string
	for _, h := range hunks {
		for _, line := range h.Lines {
			switch {
			case strings.HasPrefix(line, "-"):
				before = append(before, line[1:])
			case strings.HasPrefix(line, "+"):
				after = append(after, line[1:])
			}
		}
	}
	return added(before, after), true
}
