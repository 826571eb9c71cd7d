package derive

import (
	"path"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

// Calls chooses tool calls by what they are. The zero value chooses all.
type Calls struct {
	tool   string // in lower case
	prefix bool   // tool is only the beginning of a name
	file   string // a framed path, or the end of one, in lower case
}

// CallsOf chooses calls of a tool, whose name may end in * for anything, that touch a file. An absolute path is that
// file; any other is every file whose path ends with it. Upper and lower case are the same. "" is any.
func CallsOf(tool, file string) Calls {
	var c Calls
	c.tool, c.prefix = strings.CutSuffix(folded(tool), "*")
	if file == "" {
		return c
	}
	file = path.Clean(strings.ReplaceAll(file, `\`, "/"))
	c.file = "/" + strings.TrimPrefix(file, "/") + ">"
	if strings.HasPrefix(file, "/") || len(file) > 1 && file[1] == ':' {
		c.file = "<" + file + ">"
	}
	c.file = folded(c.file)
	return c
}

// All reports whether every call is chosen, and with them everything else that lines say.
func (c Calls) All() bool { return c == Calls{} }

// Needles returns texts that every line with a chosen call has: among all of its texts, not in each.
func (c Calls) Needles() (out []string) {
	for _, x := range []string{c.tool, c.file} {
		if x != "" {
			out = append(out, x)
		}
	}
	return out
}

// Match reports whether a call is chosen.
func (c Calls) Match(b *transcript.Block) bool {
	name := folded(b.ToolName)
	if c.prefix && !strings.HasPrefix(name, c.tool) || !c.prefix && c.tool != "" && name != c.tool {
		return false
	}
	return c.touches(transcript.ToolPath(b.ToolName, b.Input))
}

// folded returns a name as names are compared.
func folded(name string) string { return strings.ToLower(transcript.Compose(name)) }

func (c Calls) touches(path string) bool {
	return c.file == "" || strings.Contains(folded(framed(path)), c.file)
}

// Of returns the texts of a line's chosen calls and of the results of chosen calls. known says of calls by their id
// whether they are chosen; those of the line are added to it. sure is false when the line has a result of a call that
// is not known.
func (c Calls) Of(l server.Line, known map[string]bool) (list []server.Text, sure bool) {
	var t texts
	sure = true
	for _, r := range records(l) {
		if r.Type == "attachment" && c.tool == "" && !c.prefix && c.touches(attachedPath(&r)) {
			t.Record(l.Index, time.Time{}, &r)
		}
		if r.Message == nil {
			continue
		}
		for _, b := range r.Message.Blocks() {
			switch b.Kind {
			case transcript.ToolUseBlock:
				if known[b.ToolID] = c.Match(&b); known[b.ToolID] {
					t.called(l.Index, time.Time{}, &b)
					t.use(l.Index, time.Time{}, &b)
				}
			case transcript.ToolResultBlock:
				chosen, seen := known[b.ToolID]
				if sure = sure && seen; chosen {
					t.failed(l.Index, time.Time{}, &b)
					t.Add(l.Index, time.Time{}, "result", b.Output())
				}
			}
		}
	}
	return t.List, sure
}

// attachedPath returns the path of a file that the person attached; "" of other records.
func attachedPath(r *transcript.Record) string {
	if r.Type != "attachment" || r.Subtype != "file" {
		return ""
	}
	return transcript.StringField(r.Attached, "filename")
}
