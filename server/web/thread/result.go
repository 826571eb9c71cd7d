package thread

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/ccship/ccship/server/web/markup"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/transcript"
)

// outcome is what toolUseResult says of the tools that are known.
type outcome struct {
	Stdout      string          `json:"stdout"`
	Stderr      string          `json:"stderr"`
	Interrupted bool            `json:"interrupted"`
	Patch       few[hunk]       `json:"structuredPatch"`
	File        *readFile       `json:"file"`
	AgentID     string          `json:"agentId"`
	Status      string          `json:"status"`
	Tokens      int64           `json:"totalTokens"`
	Millis      int64           `json:"totalDurationMs"`
	OwnMillis   float64         `json:"durationMs"`
	OwnSeconds  float64         `json:"durationSeconds"`
	Uses        int64           `json:"totalToolUseCount"`
	Answers     json.RawMessage `json:"answers"`
}

type hunk struct {
	OldStart int         `json:"oldStart"`
	NewStart int         `json:"newStart"`
	Lines    few[string] `json:"lines"`
}

type readFile struct {
	FilePath  string `json:"filePath"`
	Content   string `json:"content"`
	StartLine int64  `json:"startLine"`
}

func readOutcome(raw []byte) (o outcome) {
	_ = json.Unmarshal(raw, &o) // a string, an array, or members of another kind: their fields stay empty
	return o
}

// results shows the tool results of a user record: with their calls where these are on the page.
func (b *Builder) results(rec transcript.Record, it Item) {
	var alone []Part
	for _, x := range b.blocks {
		if x.Kind != transcript.ToolResultBlock {
			continue
		}
		if t := b.calls[x.ToolID]; t != nil && t.ResultLine < 0 {
			b.finish(t, rec, x)
			b.folded = cmp.Or(b.folded, t)
			continue
		}
		id, _ := page.Cut(x.ToolID, idSize)
		t := &Tool{ID: id, Name: "Result", State: "none", ResultLine: -1, Word: "call not on this page"}
		if c, ok := b.earlier[x.ToolID]; ok {
			t.call = c
			b.title(t)
			t.CallLine, t.CallURL = c.Line, b.base+b.stream.LinePath(c.Line)
		}
		if !b.budget.Piece() {
			alone = append(alone, b.rest())
			break
		}
		b.finish(t, rec, x)
		alone = append(alone, Part{Kind: "tool", Tool: t})
		if t.CallURL == "" {
			b.early[x.ToolID] = early{t, b.at, rec, x}
		}
	}
	if len(alone) == 0 {
		return
	}
	it.Kind, it.Parts = "result", alone
	b.push(it)
}

// early is a result that stands before its call, as results of calls that ran side by side may.
type early struct {
	tool  *Tool // where it is shown unless the call comes
	at    StoredLine
	rec   transcript.Record
	block transcript.Block
}

// claim gives a call the result that stood before it.
func (b *Builder) claim(t *Tool, id string) {
	e, ok := b.early[id]
	if !ok {
		return
	}
	at := b.at
	b.at, b.images = e.at, nil
	b.finish(t, e.rec, e.block)
	b.at, b.images, e.tool.moved = at, nil, true
}

// finish attaches a result to its call.
func (b *Builder) finish(t *Tool, rec transcript.Record, x transcript.Block) {
	o := readOutcome(rec.ToolResult)
	t.State, t.Word, t.ResultLine = "ok", "ok", b.at.Index
	if x.Error {
		t.State, t.Word = "error", "failed"
	}
	if o.Interrupted {
		t.State, t.Word = "error", "interrupted"
	}
	b.took(t, between(t.began, rec.Time), o)
	t.Result = b.output(t.call, o, x)
	b.overflow(t, x.Output())
	if len(o.Patch) > 0 && (t.call.Name == "Edit" || t.call.Name == "MultiEdit" || t.call.Name == "Write") && !x.Error {
		t.Input, t.Result = b.patch(o, t.call.relative(t.call.input().FilePath)), nil
	}
	if id := o.AgentID; id != "" && IsPlainID(id) {
		t.Agent = b.agent(id, o)
	}
	b.trim(t.Input)
	b.trim(t.Result)
}

var plainID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// IsPlainID reports whether a session's or agent's id is safe in a command and in a path.
func IsPlainID(id string) bool { return plainID.MatchString(id) }

// agent links to the transcript of an agent of this session, or of the one this session's agents belong to.
func (b *Builder) agent(id string, o outcome) *AgentLink {
	s := b.stream.Agent(id)
	a := &AgentLink{Name: "agent " + page.Short(id, 8), URL: b.base + s.Path(""),
		Inside: b.base + s.Path("/tail", "after", "-1", "inside", "1")}
	var facts []string
	if o.Uses > 0 {
		facts = append(facts, page.Count(o.Uses, "tool call"))
	}
	if o.Tokens > 0 {
		facts = append(facts, page.Tokens(o.Tokens)+" tokens")
	}
	if o.Status == "async_launched" {
		facts = append(facts, "in the background")
	}
	a.Facts = strings.Join(facts, ", ")
	return a
}

// output shows what a tool answered.
func (b *Builder) output(c call, o outcome, x transcript.Block) []Part {
	out := b.pictures(x.Content)
	text := x.Output()
	if x.Error {
		p := b.terminal(strings.TrimSuffix(strings.TrimPrefix(text, "<tool_use_error>"), "</tool_use_error>"))
		p.Error = true
		return append(out, p)
	}
	switch c.Name {
	case "Bash", "PowerShell", "BashOutput", "TaskOutput":
		return append(out, b.shell(o, text)...)
	case "Read":
		return append(out, b.file(o, c, text)...)
	case "Edit", "MultiEdit", "Write", "TodoWrite", "NotebookEdit":
		return out // that it was done the call says
	case "Task", "Agent", "WebFetch", "WebSearch", "ExitPlanMode", "advisor", "web_fetch", "web_search":
		if strings.TrimSpace(text) != "" {
			out = append(out, b.markdown(text))
		}
		return out
	}
	if strings.TrimSpace(text) == "" {
		if len(out) == 0 {
			out = append(out, Part{Kind: "note", Title: "no output"})
		}
		return out
	}
	if c.Name == "" || strings.HasPrefix(c.Name, "mcp__") {
		if t := strings.TrimSpace(text); t[0] == '{' || t[0] == '[' {
			return append(out, b.json([]byte(t)))
		}
	}
	return append(out, b.terminal(text))
}

// shell shows what a command printed: both streams when they are separate.
func (b *Builder) shell(o outcome, text string) []Part {
	var out []Part
	if o.Stdout == "" && o.Stderr == "" {
		if strings.TrimSpace(text) == "" {
			return []Part{{Kind: "note", Title: "no output"}}
		}
		return []Part{b.terminal(text)}
	}
	if o.Stdout != "" {
		out = append(out, b.terminal(o.Stdout))
	}
	if o.Stderr != "" {
		p := b.terminal(o.Stderr)
		p.Title = "stderr"
		out = append(out, p)
	}
	return out
}

// numbered is a line as Read answers it: its number and an arrow or a tab.
var numbered = regexp.MustCompile(`(?m)^ *\d+(→|\t)`)

// file shows what was read of a file, coloured by its name.
func (b *Builder) file(o outcome, c call, text string) []Part {
	path := c.input().FilePath
	if o.File != nil && o.File.Content != "" {
		p := b.code(o.File.Content, cmp.Or(o.File.FilePath, path))
		if o.File.StartLine > 1 {
			p.Title = fmt.Sprintf("from line %d", o.File.StartLine)
		}
		return []Part{p}
	}
	if text == "" {
		return nil
	}
	if i := strings.Index(text, "<system-reminder>"); i > 0 {
		text = text[:i]
	}
	return []Part{b.code(numbered.ReplaceAllString(text, ""), path)}
}

// patch shows what an edit changed, with the file's line numbers.
func (b *Builder) patch(o outcome, path string) []Part {
	var out []Part
	for _, h := range o.Patch {
		var before, after strings.Builder
		for _, l := range h.Lines {
			if l == "" {
				l = " "
			}
			if l[0] != '+' && l[0] != '\\' {
				before.WriteString(l[1:] + "\n")
			}
			if l[0] != '-' && l[0] != '\\' {
				after.WriteString(l[1:] + "\n")
			}
		}
		p := b.diff(before.String(), after.String())
		p.Title = path
		renumber(p.Diff, h)
		if out = append(out, p); b.budget.Left() == 0 {
			break
		}
	}
	return out
}

// renumber moves a hunk's lines to where they are in the file.
func renumber(lines []markup.DiffLine, h hunk) {
	for i := range lines {
		if lines[i].Old > 0 {
			lines[i].Old += max(h.OldStart, 1) - 1
		}
		if lines[i].New > 0 {
			lines[i].New += max(h.NewStart, 1) - 1
		}
	}
}
