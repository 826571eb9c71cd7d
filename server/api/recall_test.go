package api_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// work is a session in which a test fails, is fixed and passes, one record a line, a minute after another.
func work(id string, day int) piece {
	tool := func(name, tool, input string) string {
		return fmt.Sprintf(`"type":"assistant","message":{"id":"m-%s-%s","role":"assistant","model":"claude-x","content":[`+
			`{"type":"tool_use","id":"%s-%s","name":%q,"input":%s}]}`, id, name, id, name, tool, input)
	}
	result := func(name, text string, failed bool) string {
		return fmt.Sprintf(`"type":"user","message":{"role":"user","content":[`+
			`{"type":"tool_result","tool_use_id":"%s-%s","content":%q,"is_error":%t}]}`, id, name, text, failed)
	}
	records := []string{
		`"type":"user","message":{"role":"user","content":"make the tests pass"}`,
		tool("a", "Bash", `{"command":"go test ./cart"}`),
		result("a", "Exit code 1\ncart.go:3: undefined: total", true),
		tool("b", "Read", `{"file_path":"/home/kim/shop/cart.go"}`),
		result("b", "package cart", false),
		tool("c", "Edit", `{"file_path":"/home/kim/shop/cart.go","old_string":"a","new_string":"b"}`),
		result("c", "ok", false),
		tool("d", "Bash", `{"command":"go test ./cart"}`),
		result("d", "Exit code 1\ncart.go:3: undefined: total", true),
		tool("e", "Edit", `{"file_path":"/home/kim/shop/cart.go","old_string":"b","new_string":"total"}`),
		result("e", "ok", false),
		tool("f", "Bash", `{"command":"go test ./cart"}`),
		result("f", "ok cart 0.1s", false),
		tool("g", "Bash", `{"command":"git commit -m total"}`),
		result("g", "done", false),
		`"type":"user","message":{"role":"user","content":"now the docs"}`,
		tool("h", "Write", `{"file_path":"/home/kim/shop/docs/mycart.go","content":"x"}`),
		result("h", "ok", false),
	}
	p := piece{}
	for i, r := range records {
		parent := "null"
		if i > 0 {
			parent = fmt.Sprintf(`"%s-u%d"`, id, i-1)
		}
		p.lines = append(p.lines, fmt.Sprintf(
			`{"uuid":"%s-u%d","parentUuid":%s,"sessionId":%q,"timestamp":"2026-11-%02dT09:%02d:00.000Z","permissionMode":"default",%s}`,
			id, i, parent, id, day, i, r))
	}
	return p
}

// TestTimeline: pages of a timeline join to the whole, kinds narrow it, and nobody else sees it.
func TestTimeline(t *testing.T) {
	r := newRig(t)
	r.post(work("s", 2).body("s"))
	r.waitDerived()
	type page struct {
		Moments []struct {
			Line     int64 `json:"line_index"`
			Kind     string
			Text     string
			Duration int64 `json:"duration_ms"`
			MayWait  bool  `json:"may_include_waiting"`
			URL      string
		}
		Read int64 `json:"lines_read"`
		Next *string
	}
	read := func(query string) (all []string) {
		for after := ""; ; {
			var p page
			r.getJSON("/api/sessions/s/timeline?limit=2"+query+after, &p)
			if p.Read != 18 {
				t.Errorf("%d lines are read", p.Read)
			}
			for _, m := range p.Moments {
				all = append(all, fmt.Sprintf("%d %s %s %ds %t", m.Line, m.Kind, m.Text, m.Duration/1000, m.MayWait))
				if !strings.Contains(m.URL, fmt.Sprintf("/sessions/s/L/%d?", m.Line)) {
					t.Errorf("the address of line %d is %s", m.Line, m.URL)
				}
			}
			if p.Next == nil {
				return all
			}
			after = "&after=" + url.QueryEscape(*p.Next)
		}
	}
	want := []string{
		"0 prompt make the tests pass 840s true", "2 error Exit code 1 cart.go:3: undefined: total 60s true", "4 tool /home/kim/shop/cart.go 60s true",
		"6 tool /home/kim/shop/cart.go 60s true", "8 error Exit code 1 cart.go:3: undefined: total 60s true", "10 tool /home/kim/shop/cart.go 60s true",
		"12 tool go test ./cart 60s true", "14 tool git commit -m total 60s true", "15 prompt now the docs 0s false", "17 tool /home/kim/shop/docs/mycart.go 60s true",
	}
	if got := read(""); !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if got := read("&kind=prompt,checkpoint"); !slices.Equal(got, []string{want[0], want[8]}) {
		t.Errorf("prompts are %v", got)
	}
	for path, status := range map[string]int{"s/timeline?kind=x": 400, "s/timeline?after=x": 400, "other/timeline": 404} {
		if a := r.get("/api/sessions/" + path); a.status != status {
			t.Errorf("%s: %d", path, a.status)
		}
	}
}

// TestBlame: a file is found by its path or the end of it, not by a part of a name, and each turn is one answer.
func TestBlame(t *testing.T) {
	r := newRig(t)
	r.post(work("old", 2).body("old"))
	r.post(work("new", 3).body("new"))
	r.waitDerived()
	ask := func(query string) string {
		var a struct {
			Turns []struct {
				Session      struct{ Session_id string }
				Line         int64 `json:"line_index"`
				Kind, Path   string
				Edits, Reads int
				Prompt       *struct{ Text string }
			}
			More bool
		}
		r.getJSON("/api/blame?"+query, &a)
		var out []string
		for _, x := range a.Turns {
			out = append(out, fmt.Sprint(x.Session.Session_id, " ", x.Line, " ", x.Kind, " ", x.Path, " ", x.Edits, " ", x.Reads, " ", x.Prompt.Text))
		}
		return strings.Join(out, ", ") + fmt.Sprint(" ", a.More)
	}
	one := " 9 edit /home/kim/shop/cart.go 2 1 make the tests pass"
	for query, want := range map[string]string{
		"file=cart.go":                            "new" + one + ", old" + one + " false",
		"file=./shop/cart.go&limit=1":             "new" + one + " true",
		"file=/home/kim/shop/cart.go&session=old": "old" + one + " false",
		"file=/shop/cart.go":                      " false",
		"file=art.go":                             " false",
		"file=cart.go&kind=read&session=old":      "old 3 read /home/kim/shop/cart.go 0 1 make the tests pass false",
		"file=mycart.go&session=old":              "old 16 edit /home/kim/shop/docs/mycart.go 1 0 now the docs false",
		"file=" + url.QueryEscape(`shop\docs\mycart.go`) + "&session=old": "old 16 edit /home/kim/shop/docs/mycart.go 1 0 now the docs false",
	} {
		if got := ask(query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	for query, want := range map[string]int{"file:cart.go": 3, "tool:Bash": 4, "tool:bash kind:command": 4, "tool:Bash cart": 6,
		"tool:Bash kind:error": 2, "tool:E*": 2, "tool:Edit file:mycart.go": 0, "file:cart.go total": 1, "tool:Read package": 1} {
		var found struct {
			Sessions []struct{ Hits []struct{ Kind string } }
		}
		r.getJSON("/api/search?each=50&q="+url.QueryEscape("session:old "+query), &found)
		hits := 0
		for _, x := range found.Sessions {
			hits += len(x.Hits)
		}
		if hits != want {
			t.Errorf("%s finds %+v, want %d", query, found, want)
		}
	}
	if a := r.get("/api/blame"); a.status != 400 {
		t.Error(a.status)
	}
}

// TestFix: an error with what was done until the same command passed; two occurrences of one episode are one answer.
func TestFix(t *testing.T) {
	r := newRig(t)
	p := work("s", 2)
	r.post(p.body("s"))
	open := work("open", 4)
	open.lines = open.lines[:3]
	r.post(open.body("open"))
	gone := work("gone", 3)
	gone.lines = gone.lines[:5]
	r.post(gone.body("gone"))
	r.waitDerived()
	ask := func(query string) string {
		var a struct {
			Episodes []struct {
				Session struct{ Session_id string }
				Line    int64 `json:"line_index"`
				Outcome string
				Again   int
				Call    struct{ Text string }
				Success *struct {
					Line int64 `json:"line_index"`
				}
				Steps  []struct{ Kind, Text string }
				Prompt struct{ Text string }
			}
		}
		r.getJSON("/api/fix?"+query, &a)
		var out []string
		for _, e := range a.Episodes {
			line := fmt.Sprint(e.Session.Session_id, " ", e.Line, " ", e.Outcome, " ", e.Again, " ", e.Call.Text, " ", e.Prompt.Text)
			if e.Success != nil {
				line += fmt.Sprint(" by ", e.Success.Line)
			}
			for _, s := range e.Steps {
				line += "; " + s.Kind + " " + s.Text
			}
			out = append(out, line)
		}
		return strings.Join(out, "\n")
	}
	fixed := "s 2 fixed 1 go test ./cart make the tests pass by 11; edit /home/kim/shop/cart.go; command go test ./cart; " +
		"edit /home/kim/shop/cart.go; command go test ./cart"
	all := "open 2 open 0 go test ./cart make the tests pass\ngone 2 gone 0 go test ./cart make the tests pass\n" + fixed
	for query, want := range map[string]string{
		"q=" + url.QueryEscape("undefined: total"):                     all,
		"q=" + url.QueryEscape("undefined: total") + "&limit=1":        strings.SplitN(all, "\n", 2)[0],
		"q=" + url.QueryEscape(`total "undefined"`) + "&session=s":     fixed,
		"q=" + url.QueryEscape("CART.GO:3:\nundefined") + "&session=s": fixed,
		"q=nowhere": "",
	} {
		if got := ask(query); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", query, got, want)
		}
	}
	if a := r.get("/api/fix?q=%22"); a.status != 400 {
		t.Error(a.status)
	}
}
