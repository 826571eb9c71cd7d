package thread

import (
	"bytes"
	"cmp"
	"encoding/json"
	"html/template"
	"strings"

	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/transcript"
)

// input is what the tools that are known take. What a call has as another kind than expected is left out.
type input struct {
	Command      string           `json:"command"`
	Description  string           `json:"description"`
	FilePath     string           `json:"file_path"`
	NotebookPath string           `json:"notebook_path"`
	OldString    string           `json:"old_string"`
	NewString    string           `json:"new_string"`
	NewSource    string           `json:"new_source"`
	Content      string           `json:"content"`
	Edits        few[replacement] `json:"edits"`
	Prompt       string           `json:"prompt"`
	SubagentType string           `json:"subagent_type"`
	Plan         string           `json:"plan"`
	Todos        few[todoInput]   `json:"todos"`
}

type replacement struct {
	Old string `json:"old_string"`
	New string `json:"new_string"`
	All bool   `json:"replace_all"`
}

type todoInput struct {
	Content string `json:"content"`
	Status  string `json:"status"`
}

func readInput(raw []byte) (in input) {
	_ = json.Unmarshal(raw, &in) // a member of another kind leaves its field empty
	return in
}

const (
	DiffContext   = 3
	diffLines     = 300
	FullDiffLines = 20_000
	summarySize   = 160 // characters
	idSize        = 200 // bytes
)

// call shows a tool call; its result is attached when it comes.
func (b *Builder) call(rec transcript.Record, x transcript.Block) *Tool {
	t := &Tool{
		ID: x.ToolID, State: "none", Word: "no result", ResultLine: -1, began: rec.Time,
		call: call{Line: b.at.Index, Name: x.ToolName, Input: x.Input, Cwd: rec.Cwd},
	}
	b.title(t)
	in := t.call.input()
	switch x.ToolName {
	case "Bash", "PowerShell":
		t.Input = []Part{b.code(in.Command, "bash")}
	case "Edit", "MultiEdit":
		t.Open = true
		t.Input = b.edits(in, t.call.relative(in.FilePath))
	case "Write":
		t.Open = true
		p := b.code(in.Content, in.FilePath)
		p.Title = t.call.relative(in.FilePath)
		t.Input = []Part{p}
	case "NotebookEdit":
		t.Input = []Part{b.code(in.NewSource, "python")}
	case "Read", "Glob", "Grep", "LS", "WebFetch", "WebSearch", "ToolSearch":
		t.Input = b.pairs(x.Input)
	case "TodoWrite":
		t.Open = true
		t.Input = []Part{{Kind: "todo", Todos: b.todos(in.Todos)}}
	case "Task", "Agent":
		t.Input = []Part{b.markdown(in.Prompt)}
		if a, ok := b.Agents[AgentKey(in.Prompt)]; ok {
			t.Agent = &a
		}
	case "ExitPlanMode":
		t.Open = true
		t.Input = []Part{b.markdown(in.Plan)}
	default:
		t.Input = []Part{b.json(x.Input)}
	}
	if t.ID != "" {
		b.calls[t.ID] = t
		b.claim(t, t.ID)
	}
	t.ID, _ = page.Cut(t.ID, idSize)
	return t
}

// title names the call and sums it up in a line, with paths as seen from the working directory.
func (b *Builder) title(t *Tool) {
	defer func() { b.budget.Piece(t.Name, t.Summary, t.Note) }()
	t.Name = page.OneLine(t.call.Name, summarySize)
	if rest, mcp := strings.CutPrefix(t.Name, "mcp__"); mcp {
		if server, name, ok := strings.Cut(rest, "__"); ok {
			t.Name = server + " · " + name
		}
	}
	summary := transcript.ToolSummary(t.call.Name, t.call.Input, 0)
	switch in := t.call.input(); t.call.Name {
	case "Bash", "PowerShell":
		summary, t.Note = in.Command, page.OneLine(in.Description, summarySize)
	case "Task", "Agent":
		summary = strings.TrimPrefix(in.SubagentType+": "+in.Description, ": ")
	case "TodoWrite", "ExitPlanMode":
		summary = "" // all of it stands below
	}
	t.Summary = page.OneLine(t.call.relative(summary), summarySize)
	if path := t.call.pathOf(); path != "" {
		t.Folder, t.File = splitPath(page.OneLine(t.call.relative(path), maxPath))
		t.File = page.Short(t.File, summarySize)
		switch t.call.Name {
		case "Edit", "MultiEdit", "Write", "NotebookEdit":
			if b.Project != "" && len(path) <= maxPath {
				t.TurnsURL = b.base + page.Address("/why", nil, "file", t.call.relative(path), "project", b.Project)
			}
		}
	}
}

// maxPath is the longest path of a heading, in characters.
const maxPath = 1024

// input returns what the call takes.
func (c *call) input() *input {
	if c.in == nil {
		in := readInput(c.Input)
		c.in = &in
	}
	return c.in
}

// relative takes the working directory out of paths.
func (c call) relative(s string) string {
	if c.Cwd == "" {
		return s
	}
	return strings.ReplaceAll(s, strings.TrimSuffix(c.Cwd, "/")+"/", "")
}

// edits shows replacements as differences.
func (b *Builder) edits(in *input, path string) []Part {
	list := in.Edits
	if in.OldString != "" || in.NewString != "" || len(list) == 0 {
		list = []replacement{{Old: in.OldString, New: in.NewString}}
	}
	var out []Part
	for _, e := range list {
		p := b.diff(e.Old, e.New)
		for i := range p.Diff {
			p.Diff[i].Old, p.Diff[i].New = 0, 0 // where in the file they are is not known yet
		}
		p.Title = path
		if out = append(out, p); b.budget.Left() == 0 {
			break
		}
	}
	return out
}

func (b *Builder) diff(before, after string) Part {
	if !b.budget.Piece() {
		b.cut = true
		return Part{Kind: "diff", More: int64(strings.Count(before, "\n") + strings.Count(after, "\n") + 1)}
	}
	limit := diffLines
	if b.Full {
		limit = FullDiffLines
	} else if b.left <= 0 {
		limit = 20
	}
	lines, more := b.budget.Diff(before, after, DiffContext, limit)
	for _, l := range lines {
		b.left -= len(l.HTML)
	}
	b.cut = b.cut || more > 0
	return Part{Kind: "diff", Diff: lines, More: int64(more)}
}

func (b *Builder) todos(list []todoInput) []Todo {
	out := make([]Todo, 0, len(list))
	for _, t := range list {
		state := "open"
		switch t.Status {
		case "completed":
			state = "done"
		case "in_progress":
			state = "now"
		}
		text := page.Short(t.Content, maxWords)
		if !b.budget.Piece(text) {
			b.cut = true
			break
		}
		out = append(out, Todo{state, text})
	}
	return out
}

// pairs shows the members of a flat object, or JSON.
func (b *Builder) pairs(raw []byte) []Part {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return []Part{b.json(raw)}
	}
	var list []Pair
	for d.More() {
		name, err := d.Token()
		key, ok := name.(string)
		var value json.RawMessage
		if err != nil || !ok || d.Decode(&value) != nil {
			return []Part{b.json(raw)}
		}
		text := string(value)
		if value[0] == '"' {
			text = transcript.Unquote(value[1 : len(value)-1])
		}
		p := b.plain(text)
		list = append(list, Pair{page.Short(key, summarySize), p.HTML, p.More})
		if b.budget.Left() == 0 {
			break
		}
	}
	return []Part{{Kind: "pairs", Pairs: list}}
}

// json shows a value indented.
func (b *Builder) json(raw []byte) Part {
	limit := b.limit()
	p := b.part("code", "", func(string) (template.HTML, int64) { return b.budget.JSON(raw, limit) })
	b.left -= min(len(raw), limit)
	return p
}

// AgentKey identifies a task by the beginning of its agent's prompt.
func AgentKey(task string) string { return page.OneLine(task, 120) }

// FoldRuns puts successive successful calls into one item, which says in a line what they did. What a reader looks for
// stays where it is: failed and running calls, changes of files, agents, plans, questions and secrets.
func FoldRuns(items []Item) []Item {
	var out, run []Item
	calls := 0 // items of run that hold calls
	last := 0  // where in run the last of them ends
	flush := func() {
		if calls > 1 {
			out = append(out, folded(run[:last]))
			run = run[last:]
		}
		out = append(out, run...)
		run, calls, last = nil, 0, 0
	}
	for i := range items {
		tools, fits := foldable(&items[i])
		if !fits || len(run) > 0 && run[0].Left != items[i].Left {
			flush()
		}
		if !fits {
			out = append(out, items[i])
			continue
		}
		run = append(run, items[i])
		if calls += tools; tools > 0 {
			last = len(run)
		}
	}
	flush()
	return out
}

// foldable reports whether an item may be part of a run, and how many calls it has. Thoughts between calls may.
func foldable(it *Item) (tools int, fits bool) {
	if it.Kind != "answer" || len(it.Secrets) > 0 {
		return 0, false
	}
	for _, p := range it.Parts {
		switch {
		case p.Kind == "think":
		case p.Kind != "tool" || p.Tool.State != "ok" || p.Tool.Agent != nil || deeds[p.Tool.call.Name] == stays:
			return 0, false
		default:
			tools++
		}
	}
	return tools, true
}

// deed is what a call does, as a run counts it.
type deed int

const (
	otherDeed deed = iota
	commandDeed
	readDeed
	searchDeed
	webDeed
	stays // never part of a run
)

// deeds are of the tools that are known.
var deeds = map[string]deed{"Bash": commandDeed, "PowerShell": commandDeed, "Read": readDeed, "NotebookRead": readDeed,
	"Grep": searchDeed, "Glob": searchDeed, "LS": searchDeed, "ToolSearch": searchDeed, "WebFetch": webDeed,
	"WebSearch": webDeed, "web_fetch": webDeed, "web_search": webDeed, "Edit": stays, "MultiEdit": stays, "Write": stays,
	"NotebookEdit": stays, "Task": stays, "Agent": stays, "TodoWrite": stays, "ExitPlanMode": stays,
	"AskUserQuestion": stays}

// folded returns the item of a run.
func folded(run []Item) Item {
	it := run[0]
	it.Kind, it.Mark, it.Parts, it.Tags, it.Cut = "run", it.Mark+"-run", nil, nil, false
	it.Run = make([]Item, len(run))
	var count [stays]int64
	var names []string // of other tools
	files := map[string]bool{}
	for i := range run {
		it.Run[i] = run[i]
		it.Run[i].Cont = true
		for _, p := range run[i].Parts {
			if p.Tool == nil {
				continue
			}
			it.Took += p.Tool.Took
			kind := deeds[p.Tool.call.Name]
			if path := p.Tool.call.input().FilePath; kind == readDeed {
				if files[path] {
					continue // again
				}
				files[path] = path != ""
			}
			if count[kind]++; kind == otherDeed {
				names = append(names, p.Tool.Name)
			}
		}
	}
	it.Summary = deedWords(count, names)
	return it
}

// deedWords says what a run did: "Ran 9 commands, read 4 files".
func deedWords(count [stays]int64, names []string) string {
	var parts []string
	for _, d := range []struct {
		kind       deed
		verb, noun string
	}{{commandDeed, "ran", "command"}, {readDeed, "read", "file"}, {searchDeed, "made", "search"},
		{webDeed, "looked up", "page"}, {otherDeed, "made", "other call"}} {
		switch n := count[d.kind]; {
		case n == 0:
		case d.kind == otherDeed && n <= 2:
			parts = append(parts, "called "+strings.Join(names, " and "))
		case d.kind == searchDeed && n > 1:
			parts = append(parts, "made "+page.Digits(n)+" searches")
		default:
			parts = append(parts, d.verb+" "+page.Count(n, d.noun))
		}
	}
	words := strings.Join(parts, ", ")
	return strings.ToUpper(words[:min(1, len(words))]) + words[min(1, len(words)):]
}

// splitPath cuts a path into its folder and the name of its file, so that the name stays when there is little space.
func splitPath(path string) (folder, name string) {
	at := strings.LastIndexAny(path, `/\`) + 1
	return path[:at], path[at:]
}

// pathOf returns the file that a call is about; "" for other calls.
func (c *call) pathOf() string {
	switch c.Name {
	case "Read", "Edit", "MultiEdit", "Write", "NotebookEdit", "NotebookRead":
		return cmp.Or(c.input().FilePath, c.input().NotebookPath)
	}
	return ""
}
