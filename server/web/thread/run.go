package thread

import (
	"cmp"
	"strings"

	"github.com/ccship/ccship/server/web/page"
)

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
