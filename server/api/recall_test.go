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
