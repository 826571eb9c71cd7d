package derive_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript/session"
)

// timeline is what is stored of a session's timeline, one moment a line.
func (s shelf) timeline(name string) string {
	s.Helper()
	list, err := s.Moments(s.Context(), server.MomentQuery{Owner: s.session(name).Owner,
		Stream: s.session(name).ID, Limit: 10_000})
	if err != nil {
		s.Fatal(err)
	}
	var out []string
	for _, x := range list {
		var m session.Moment
		if err := json.Unmarshal(x.Data, &m); err != nil || string(m.Kind) != x.Kind {
			s.Errorf("%s: %v", x.Data, err)
		}
		out = append(out, fmt.Sprintf("%d.%d %s %s %s %t", x.Line, x.Part, m.Kind, m.Text,
			time.Duration(m.Took)*time.Millisecond, m.Running))
	}
	return strings.Join(out, "\n")
}

// TestMoments: what is derived line by line, at once, and after a rewrite of the file is the timeline of its lines.
func TestMoments(t *testing.T) {
	s := newShelf(t)
	lines := []string{
		prompt(0, "one"), answerLine(1, "m1", 1, `{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"make"}}`),
		result(2, "t1", "Exit code 1", true), answerLine(3, "m2", 1, textBlock("done")), prompt(4, "two"),
	}
	for i, l := range lines {
		s.put("pieces", 0, int64(i), l)
		s.derive()
	}
	s.put("whole", 0, 0, lines...)
	s.derive()
	want := "0.0 prompt one 3m0s false\n2.0 error Exit code 1 1m0s false\n4.0 rewind back to the beginning 0s false\n" +
		"4.1 prompt two 0s true" // it has no parent
	s.expect("pieces", s.timeline("pieces"), want)
	s.expect("whole", s.timeline("whole"), want)
	s.put("whole", 1, 2, prompt(2, "instead"))
	s.derive()
	s.expect("rewritten", s.timeline("whole"), "0.0 prompt one 1m0s false\n2.0 prompt instead 0s true")
}

// TestPlaces: files, commands and errors can be looked for, and a search without kinds finds each line as before.
func TestPlaces(t *testing.T) {
	s := newShelf(t)
	s.put("s", 0, 0, prompt(0, "fix cart.go"),
		answerLine(1, "m1", 1, `{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"/home/kim/shop/cart.go"}}`),
		answerLine(2, "m1", 1, `{"type":"tool_use","id":"t2","name":"Edit","input":{"file_path":"C:\\src\\x\\cart.go","old_string":"a","new_string":"b"}}`),
		answerLine(3, "m1", 1, `{"type":"tool_use","id":"t3","name":"Bash","input":{"command":"go test ./...","description":"run"}}`),
		result(4, "t3", "cart.go:3: undefined: total", true),
		`{"type":"attachment","timestamp":"2026-08-20T12:05:00.000Z","uuid":"a","attachment":{"type":"file","filename":"/tmp/notes.md","content":{}}}`,
	)
	s.derive()
	find := func(text string, kinds ...string) string {
		hits, err := s.Search(s.Context(), server.Scope{All: true}, server.SearchQuery{Text: text, Kinds: kinds, Limit: 50})
		kit.Must(t, err)
		var out []string
		for _, h := range hits.List {
			out = append(out, fmt.Sprint(h.Line, " ", h.Kind))
		}
		return strings.Join(out, ", ")
	}
	s.expect("by place", find(`"/cart.go>"`, "edit", "read"), "2 edit, 1 read")
	s.expect("whole path", find(`"<c:/src/x/cart.go>"`, "edit", "read"), "2 edit")
	s.expect("attached", find(`"/notes.md>"`, "edit", "read"), "5 read")
	s.expect("command", find("go test", "command"), "3 command")
	s.expect("error", find("undefined", "error"), "4 error")
	s.expect("as before", find("cart.go"), "4 result, 2 tool, 1 tool, 0 prompt")
}
