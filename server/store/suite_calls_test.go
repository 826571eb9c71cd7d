package store_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/transcript"
)

// calls: a search for a tool or a file chooses tool calls, and results by the call that they answer, wherever it is.
func (s suite) calls(t *testing.T) {
	st := s.open(t)
	call := func(id, tool, input string) string {
		return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":%s}`, id, tool, input)
	}
	assistant := func(blocks string) string {
		return `{"type":"assistant","message":{"role":"assistant","model":"m","content":[` + blocks + `]}}`
	}
	result := func(id, text string, failed bool) string {
		return fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":%q,"is_error":%t}`, id, text, failed)
	}
	user := func(blocks string) string {
		return `{"type":"user","message":{"role":"user","content":[` + blocks + `]}}`
	}
	cart := `{"file_path":"/home/kim/Shop/cart.go","old_string":"a","new_string":"rounding"}`
	records := []string{
		says("prompt", "rounding with Bash in /home/kim/Shop/cart.go"),                                                                        // 0
		assistant(call("b", "Bash", `{"command":"grep rounding"}`)),                                                                           // 1
		user(result("b", "rounding found", false)),                                                                                            // 2
		assistant(call("e", "Edit", cart) + "," + call("w", "Write", `{"file_path":"/x/mycart.go"}`)),                                         // 3
		user(result("w", "rounding of w", false) + "," + result("e", "rounding refused", true)),                                               // 4
		assistant(call("g", "mcp__github__create_issue", `{"title":"rounding","body":"Bash"}`)),                                               // 5
		assistant(call("h", "mcp__gitlab__create_issue", `{"title":"rounding"}`)),                                                             // 6
		assistant(call("o", "BashOutput", `{"bash_id":"rounding"}`)),                                                                          // 7
		`{"type":"attachment","attachment":{"type":"file","filename":"/home/kim/Shop/cart.go","content":{"file":{"content":"rounding up"}}}}`, // 8
		assistant(call("far", "Bash", `{"command":"sleep 9"}`)),                                                                               // 9
	}
	records = append(records, `{"type":"file-history-snapshot","snapshot":{"timestamp":"2026-11-20T12:00:00Z",`+
		`"trackedFileBackups":{"stash/new.go":{"backupTime":"2026-11-20T12:00:00.1Z"},"stash/old.go":{"backupTime":"2026-11-20T11:00:00Z"}}}}`) // 10
	for len(records) < 150 {
		records = append(records, says("answer", "meanwhile"))
	}
	// After a rewind the calls of what follows are in the generation before.
	late := []string{user(result("far", "rounding late", true)), user(result("lost", "rounding of nobody", true))} // 150, 151
	for generation, part := range [][]string{append(slices.Clone(records), says("answer", "gone")), late} {
		b := batch("s")
		from := int64(generation * len(records))
		b.Head.Generation, b.Head.RewoundTo = int64(generation), from
		var d server.Derivation
		for i, r := range part {
			b.Lines = append(b.Lines, object(from+int64(i), r))
			d.Texts = append(d.Texts, said(b.Lines[i], start.Add(time.Duration(from+int64(i))*time.Second))...)
		}
		b.Head.EndLine = from + int64(len(part))
		put(t, st, b)
		save(t, st, lease(t, st)["s"], d)
	}
	error := []string{server.ErrorKind}
	for _, test := range []struct {
		q    server.SearchQuery
		want string
	}{
		{server.SearchQuery{Tool: "Bash"}, "9 tool, 1 tool"},
		{server.SearchQuery{Tool: "bash", Text: "rounding"}, "150 result, 2 result, 1 tool"},
		{server.SearchQuery{Tool: "Bash", Kinds: error}, "150 error"},
		{server.SearchQuery{Tool: "Bash", Kinds: error, Text: "refused"}, ""},
		{server.SearchQuery{Tool: "Edit", Text: "rounding"}, "4 result, 3 tool"},
		{server.SearchQuery{Tool: "Edit", Text: "rounding refused"}, "4 result"},
		{server.SearchQuery{Tool: "Edit", Text: "mycart"}, ""},
		{server.SearchQuery{Tool: "Write", Text: "mycart"}, "3 tool"},
		{server.SearchQuery{Tool: "mcp__github__*"}, "5 tool"},
		{server.SearchQuery{Tool: "mcp__*", Text: "rounding"}, "6 tool, 5 tool"},
		{server.SearchQuery{Tool: "mcp__*", Kinds: []string{"prompt"}}, ""},
		{server.SearchQuery{Tool: "B*"}, "9 tool, 7 tool, 1 tool"},
		{server.SearchQuery{Tool: "*", Kinds: error}, "150 error, 4 error"},
		{server.SearchQuery{Tool: "ash"}, ""},
		{server.SearchQuery{Tool: `"`}, ""},
		{server.SearchQuery{File: "cart.go"}, "8 read, 3 edit"},
		{server.SearchQuery{File: "./shop/cart.go"}, "8 read, 3 edit"},
		{server.SearchQuery{File: `/home/kim\shop/cart.go`, Kinds: []string{server.ReadKind}}, "8 read"},
		{server.SearchQuery{File: "/shop/cart.go"}, ""},
		{server.SearchQuery{File: "art.go"}, ""},
		{server.SearchQuery{File: "cart.go", Text: "rounding"}, "8 other, 4 result, 3 tool"},
		{server.SearchQuery{Text: "stash/"}, "10 other"},
		{server.SearchQuery{File: "mycart.go", Text: "rounding"}, "4 result"},
		{server.SearchQuery{File: "cart.go", Tool: "Edit"}, "3 edit"},
		{server.SearchQuery{File: "cart.go", Tool: "Read"}, ""},
		{server.SearchQuery{}, ""},
	} {
		for _, limit := range []int{100, 1} {
			var got []string
			for q := test.q; ; {
				q.Limit = limit
				hits := kit.Try(st.Search(t.Context(), all, q)).Must(t)
				got = append(got, kit.Each(hits.List, func(h server.Hit) string { return fmt.Sprint(h.Line, " ", h.Kind) })...)
				if q.After = hits.Next; q.After == "" {
					break
				}
			}
			kit.Equal(t, fmt.Sprintf("%+v, pages of %d", test.q, limit), strings.Join(got, ", "), test.want)
		}
	}
}

// says is a record with a text of a kind, as Claude Code writes it.
func says(kind, text string) string {
	content, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	switch kind {
	case "prompt":
		return `{"type":"user","message":{"role":"user","content":` + string(content) + `}}`
	case "answer":
		return `{"type":"assistant","message":{"role":"assistant","model":"m","content":[{"type":"text","text":` + string(content) + `}]}}`
	case "result":
		return `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":` + string(content) + `}]}}`
	}
	panic(kind)
}

// said are the texts of a line, as a deriver has them.
func said(l server.Line, at time.Time) []server.Text {
	list := derive.TextsOf(l)
	for i := range list {
		list[i].Time = at
	}
	return list
}

// Copies of a session are one session in a listing, with its cost, and in a search.
func (s suite) copies(t *testing.T) {
	st := s.open(t)
	line := object(0, says("answer", "once and only"))
	for i, name := range []string{"x~2", "x", "x", "fork", "x 3"} { // a copy may come first
		put(t, st, batch(name, line), func(b *server.Batch) { b.Head.Machine = []string{"m", "m", "n", "m", "m"}[i] })
		origin := "x/1"
		if name == "fork" {
			origin = "fork/1"
		}
		d := server.Derivation{Texts: said(line, start), Summary: server.Summary{
			Origin: origin, Copy: name != "x" && name != "fork", Lines: 1, Started: start, Ended: start.Add(time.Minute),
		}}
		if name != "fork" {
			d.Answers = []server.Answer{{Key: "a", Model: "m", Time: start, Tokens: server.Tokens{Output: 7}}}
		}
		for _, task := range lease(t, st) {
			save(t, st, task, d)
		}
	}
	listed := func(q server.SessionQuery) (out []string) {
		t.Helper()
		q.Limit = 100
		found := kit.Try(st.Find(t.Context(), all, q)).Must(t)
		for _, x := range found.List {
			tokens := int64(0)
			for _, u := range x.Usage {
				tokens += u.Tokens.Output
			}
			out = append(out, fmt.Sprint(x.SessionID, "@", x.Machine, " ", tokens))
		}
		kit.Gives(t, fmt.Sprintf("counted, %d listed", len(out)), int64(len(out)))(st.Count(t.Context(), all, q, 1000))
		slices.Sort(out)
		return out
	}
	same := func(what string, got []string, want ...string) {
		t.Helper()
		kit.Equal(t, what, got, want)
	}
	other := "n"
	same("all", listed(server.SessionQuery{}), "fork@m 0", "x@m 7")
	same("of the other machine", listed(server.SessionQuery{Machine: &other}), "x@n 0")
	kit.Equal(t, "streams", len(listed(server.SessionQuery{Page: server.Page{}, Agents: true})), 5)
	same("search", searched(t, st, all, server.SearchQuery{Text: "once only"}), "fork", "x")
	var pages []string
	for after := ""; ; {
		hits := kit.Try(st.Search(t.Context(), all, server.SearchQuery{Text: "once only", Limit: 1, After: after})).Must(t)
		pages = append(pages, kit.Each(hits.List, func(h server.Hit) string { return h.Session.SessionID })...)
		if after = hits.Next; after == "" {
			break
		}
	}
	slices.Sort(pages)
	same("search by pages", pages, "fork", "x")

	for _, name := range []string{"x~2", "x 3"} {
		kit.Gives(t, name+" is a fork", "")(openSession(t, st, name).CopiedFrom(t.Context()))
	}

	// One that goes on elsewhere has more, and takes the place of what it continues, with its cost.
	put(t, st, batch("x", line, object(1, says("answer", "later"))), func(b *server.Batch) { b.Head.Machine = "n" })
	for _, task := range lease(t, st) {
		save(t, st, task, server.Derivation{Texts: said(line, start), Summary: server.Summary{
			Origin: "x/1", Lines: 2, Started: start, Ended: start.Add(time.Hour),
		}})
	}
	same("continued", listed(server.SessionQuery{}), "fork@m 0", "x@n 7")
}

// An agent whose file lies in two folders is one agent of its session, and in a listing of its agents.
func (s suite) agentCopies(t *testing.T) {
	st := s.open(t)
	for _, name := range []string{"x/agent-1~2", "x", "x/agent-1", "x/agent-2", "y/agent-1"} {
		parent := transcript.ParentName(name)
		put(t, st, batch(name, object(0, says("answer", name))), func(b *server.Batch) { b.Head.Machine, b.Head.Parent = "m", parent })
		origin := "x/1"
		if name == "x/agent-2" {
			origin = "x/2"
		}
		if parent == "" {
			origin = "x/0"
		}
		for _, task := range lease(t, st) {
			save(t, st, task, server.Derivation{Summary: server.Summary{
				Origin: origin, Copy: name == "x/agent-1~2", Lines: 1, Started: start, Ended: start.Add(time.Minute),
			}})
		}
	}
	of := func(q server.SessionQuery) (names []string, agents int64) {
		q.Limit = 100
		for _, x := range kit.Try(st.Find(t.Context(), all, q)).Must(t).List {
			names, agents = append(names, x.SessionID), agents+x.Agents
		}
		slices.Sort(names)
		return names, agents
	}
	names, agents := of(server.SessionQuery{})
	kit.Equal(t, "sessions and their agents", fmt.Sprint(names, agents), "[x] 2")
	for _, q := range []server.SessionQuery{{Parent: "x"}, {Parent: "x", Agents: true}} {
		names, _ = of(q)
		kit.Equal(t, "agents", fmt.Sprint(names), "[x/agent-1 x/agent-2]")
	}
	names, _ = of(server.SessionQuery{Parent: "y"})
	kit.Equal(t, "agents of another session", fmt.Sprint(names), "[y/agent-1]")
	names, _ = of(server.SessionQuery{Agents: true})
	kit.Equal(t, "streams", len(names), 5)
}
