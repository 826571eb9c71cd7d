package derive_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/transcript/session"
)

// TestDeriveRewind: what a rewind took away stays to be found and counted, but is no fact any more.
func TestDeriveRewind(t *testing.T) {
	s := newShelf(t)
	check := func(when string) {
		t.Helper()
		s.expect(when+": texts", s.hits("needle"),
			"s 0.0 prompt, -s 0.1 answer, -s 0.2 prompt, s 2.1 answer, s 2.2 prompt")
		s.expect(when+": prompts", fmt.Sprint(s.session("s").Summary.Prompts, s.session("s").Summary.Lines), "2 3")
		s.expect(when+": answers", fmt.Sprint(s.session("s").Usage[0].Tokens.Answers), "2")
	}
	s.put("s", 0, 0, prompt(0, "needle"), answerLine(1, "m1", 5, textBlock("needle")), prompt(2, "needle"))
	s.put("s", 2, 1, answerLine(11, "m2", 5, textBlock("needle")), prompt(12, "needle"))
	s.derive()
	check("derived at once")
	kit.Must(t, s.ResetDerived(t.Context()))
	s.derive()
	check("derived again")

	s = newShelf(t)
	s.put("s", 0, 0, prompt(0, "needle"), answerLine(1, "m1", 5, textBlock("needle")))
	s.derive()
	s.put("s", 0, 2, prompt(2, "needle"))
	s.put("s", 2, 1, answerLine(11, "m2", 5, textBlock("needle")), prompt(12, "needle"))
	s.derive()
	check("derived in between")
}

// TestDeriveEpochs: after a new epoch the older ones' lines stay to be found, and are when all is derived again.
func TestDeriveEpochs(t *testing.T) {
	s := newShelf(t)
	put := func(epoch string, generation, first int64, lines ...string) {
		b := &server.Batch{Owner: 1, Received: noon, Head: server.Head{
			SessionID: "s", Machine: "m", Epoch: epoch, Generation: generation, RewoundTo: first, EndLine: first + int64(len(lines))}}
		for i, l := range lines {
			b.Lines = append(b.Lines, server.Line{Index: first + int64(i), Raw: []byte(l)})
		}
		kit.Must(t, s.Put(t.Context(), b))
	}
	put("e1", 0, 0, prompt(0, "needle"), prompt(1, "needle"))
	put("e1", 1, 1, prompt(2, "needle"))
	put("e2", 0, 0, prompt(10, "needle"))
	put("e3", 0, 0, prompt(20, "needle"), prompt(21, "needle"))
	want := "-s 0.0 prompt, -s 0.1 prompt, -s 1.1 prompt, -s 0.0 prompt, s 0.0 prompt, s 0.1 prompt"
	for range 2 {
		s.derive()
		s.expect("texts", s.hits("needle"), want)
		s.expect("prompts", fmt.Sprint(s.session("s").Summary.Prompts), "2")
		kit.Must(t, s.ResetDerived(t.Context()))
	}
}

// TestDeriveBehind: lines that come late or instead of others are derived too.
func TestDeriveBehind(t *testing.T) {
	s := newShelf(t)
	s.put("s", 0, 0, prompt(0, "first"))
	s.put("s", 0, 3, prompt(3, "last"))
	s.derive()
	s.put("s", 0, 1, prompt(1, "late"), prompt(2, "replaced"))
	s.derive()
	s.put("s", 0, 2, prompt(2, "replacement"))
	s.derive()
	s.expect("late", s.hits("late"), "s 0.1 prompt")
	s.expect("replaced", s.hits("replaced"), "")
	s.expect("replacement", s.hits("replacement"), "s 0.2 prompt")
	s.expect("prompts", fmt.Sprint(s.session("s").Summary.Prompts), "4")
}

// TestDeriveCopies: answers in forks, sidechains and agents' files count once.
func TestDeriveCopies(t *testing.T) {
	s := newShelf(t)
	s.put("s", 0, 0, prompt(0, "p"), answerLine(1, "m1", 5, textBlock("x")))
	s.put("fork", 0, 0, prompt(0, "p"), answerLine(1, "m1", 5, textBlock("x")), answerLine(2, "m2", 6, textBlock("y")))
	s.put("s/agent-1", 0, 0, strings.Replace(answerLine(1, "m1", 900, textBlock("x")), `{`, `{"isSidechain":true,`, 1),
		strings.Replace(answerLine(3, "m3", 7, textBlock("z")), `{`, `{"isSidechain":true,`, 1))
	s.put("error", 0, 0, `{"type":"assistant","uuid":"e","isApiErrorMessage":true,"message":{"id":"x","model":"<synthetic>","role":"assistant","content":[{"type":"text","text":"API Error: 401"}],"usage":{"input_tokens":0,"output_tokens":0}}}`)
	s.derive()
	rows := kit.Try(s.Usage(t.Context(), server.Scope{All: true}, server.UsageQuery{By: []string{"session"}})).Must(t)
	var got []string
	var sum int64
	for _, r := range rows {
		got = append(got, fmt.Sprint(r.Session, " ", r.Tokens.Answers))
		sum += r.Tokens.Output
	}
	kit.Check(t, sum == 5+6+7 && len(got) <= 3 && !slices.Contains(got, "error 1"), "%d output tokens in %q", sum, got)
	s.expect("an error's text", s.hits("401"), "error 0.0 other")
}

func tenLines() (lines []string) {
	for i := range 10 {
		lines = append(lines, prompt(i, fmt.Sprint("line ", i)))
	}
	return lines
}

// rewrite is what a file has from line from on after a rewind, and which lines it drops: "first-last count".
type rewrite struct {
	from  int64
	lines []string
	want  string
}

func rewritten(base []string) map[string]rewrite {
	return map[string]rewrite{
		"cut":              {7, nil, "7-10 3"},
		"cut and grown":    {7, []string{prompt(90, "a"), prompt(91, "b"), prompt(92, "c"), prompt(93, "d")}, "7-10 3"},
		"one inserted":     {4, append([]string{prompt(90, "a")}, base[4:]...), ""},
		"one taken out":    {4, base[5:], "4-5 1"},
		"one changed":      {4, append([]string{prompt(90, "a")}, base[5:]...), "4-5 1"},
		"front taken out":  {0, base[6:], "0-6 6"},
		"turned around":    {8, []string{base[9], base[8]}, ""},
		"grown, not sent":  {10, []string{prompt(90, "a")}, ""},
		"two ends changed": {1, slices.Concat([]string{prompt(90, "a")}, base[2:9], []string{prompt(91, "b")}), "1-10 2"},
	}
}

// TestDeriveDrops: a rewrite that removed lines is reported, one that only moved or repeated them is not.
func TestDeriveDrops(t *testing.T) {
	base := tenLines()
	for name, test := range rewritten(base) {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			drops := func() string {
				list := kit.Try(s.Drops(t.Context(), server.Scope{All: true}, server.DropQuery{Session: "s", Limit: 10})).Must(t)
				var out []string
				for _, d := range list {
					kit.Check(t, d.Session.SessionID == "s" && d.Generation == 1 && d.Epoch == "e" && d.At.Equal(noon), "%+v", d)
					out = append(out, fmt.Sprintf("%d-%d %d", d.First, d.Last, d.Lines))
				}
				return strings.Join(out, ", ")
			}
			s.put("s", 0, 0, base...)
			s.derive()
			s.expect("before", drops(), "")
			s.put("s", 1, test.from, test.lines...)
			s.derive()
			s.expect("after", drops(), test.want)
			kit.Must(t, s.ResetDerived(t.Context()))
			s.put("s", 2, 0, "{}") // the one before is no longer the newest
			s.derive()
			list, err := s.Drops(t.Context(), server.Scope{All: true}, server.DropQuery{Session: "s", Limit: 10})
			kit.Check(t, err == nil && (len(list) == 2) == (test.want != "") && list[0].Generation == 2,
				"derived again: %+v, %v", list, err)
		})
	}
}

// TestDeriveDropsLater: lines dropped by a rewrite that is still being sent come back one by one.
func TestDeriveDropsLater(t *testing.T) {
	s := newShelf(t)
	base := tenLines()
	s.put("s", 0, 0, base...)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- (&derive.Deriver{Store: s.Store}).Run(ctx) }()
	s.put("s", 1, 3, prompt(90, "changed"))
	put := func(line int64, raw string, want int64) {
		t.Helper()
		b := &server.Batch{Owner: 1, Received: noon, Lines: []server.Line{{Index: line, Raw: []byte(raw)}}, Head: server.Head{
			SessionID: "s", Machine: "m", Epoch: "e", Generation: 1, RewoundTo: 3, EndLine: line + 1}}
		kit.Must(t, s.Put(t.Context(), b))
		for n := int64(1); n > 0; {
			n = kit.Try(s.Lag(t.Context())).Must(t)
		}
		list, err := s.Drops(t.Context(), server.Scope{All: true}, server.DropQuery{Session: "", Limit: 10})
		kit.Check(t, err == nil && len(list) == 1 && list[0].Lines == want && list[0].First == 3, "line %d: %+v, %v",
			line, list, err)
	}
	for i := range int64(6) {
		put(4+i, base[4+i], 6-i)
	}
	put(9, prompt(91, "replaced"), 2) // what was found there is dropped again
	cancel()
	kit.Should(t, <-ended)
}

// TestUndated: what stands before any time has the first time that follows, or when it arrived if that was before.
func TestUndated(t *testing.T) {
	s := newShelf(t) // lines arrive at noon
	title := `{"type":"summary","summary":"early words","leafUuid":"x"}`
	s.put("imported", 0, 0, title, title, prompt(-60, "an hour before"), title, prompt(-50, "and then"))
	s.put("ahead", 0, 0, title, prompt(60, "of a clock that is fast"))
	s.put("bare", 0, 0, title)
	s.derive()
	hits := kit.Try(s.Search(s.Context(), server.Scope{All: true}, server.SearchQuery{Text: "early words", Limit: 50})).Must(t)
	got := map[string]map[int64]time.Duration{}
	for _, h := range hits.List {
		if got[h.Session.SessionID] == nil {
			got[h.Session.SessionID] = map[int64]time.Duration{}
		}
		got[h.Session.SessionID][h.Line] = h.Time.Sub(noon)
	}
	imported := got["imported"]
	kit.Check(t, len(imported) == 3 && imported[0] == -time.Hour && imported[1] == -time.Hour && imported[3] == -time.Hour,
		"of an imported transcript: %v", imported)
	for _, name := range []string{"ahead", "bare"} {
		x := got[name]
		kit.Check(t, len(x) == 1 && x[0] == 0, "of %s: %v", name, x)
	}
}

// timeline is what is stored of a session's timeline, one moment a line.
func (s shelf) timeline(name string) string {
	s.Helper()
	list := kit.Try(s.Moments(s.Context(), server.MomentQuery{Owner: s.session(name).Owner,
		Stream: s.session(name).ID, Limit: 10_000})).Must(s.T)
	var out []string
	for _, x := range list {
		var m session.Moment
		err := json.Unmarshal(x.Data, &m)
		kit.Check(s, err == nil && string(m.Kind) == x.Kind, "%s: %v", x.Data, err)
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
		hits := kit.Try(s.Search(s.Context(), server.Scope{All: true}, server.SearchQuery{Text: text, Kinds: kinds, Limit: 50})).Must(t)
		return strings.Join(kit.Each(hits.List, func(h server.Hit) string { return fmt.Sprint(h.Line, " ", h.Kind) }), ", ")
	}
	s.expect("by place", find(`"/cart.go>"`, "edit", "read"), "2 edit, 1 read")
	s.expect("whole path", find(`"<c:/src/x/cart.go>"`, "edit", "read"), "2 edit")
	s.expect("attached", find(`"/notes.md>"`, "edit", "read"), "5 read")
	s.expect("command", find("go test", "command"), "3 command")
	s.expect("error", find("undefined", "error"), "4 error")
	s.expect("as before", find("cart.go"), "4 result, 2 tool, 1 tool, 0 prompt")
}

func attachment(members string) string { return `{"type":"attachment","attachment":{` + members + `}}` }

func snapshot(backups string) string {
	return `{"type":"file-history-snapshot","snapshot":{"timestamp":"2026-01-20T15:50:50.861Z","trackedFileBackups":{` + backups + `}}}`
}

// TestOf: what can be found in lines, by kind.
func TestOf(t *testing.T) {
	long := strings.Repeat("x", 300<<10)
	for _, test := range []struct {
		kind server.Kind
		raw  string
		want []string
	}{
		{server.Object, `{"type":"user","message":{"role":"user","content":"hello there"}}`, []string{"prompt hello there"}},
		{server.Object, `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":"it broke"}]}}`,
			[]string{"error it broke", "result it broke"}},
		{server.Object, `{"type":"assistant","message":{"role":"assistant","model":"m","content":[{"type":"text","text":"yes"},{"type":"thinking","thinking":"hm"},` +
			`{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls -l"}}]}}`, []string{"command ls -l", "answer yes", "thinking hm", "tool Bash ls -l"}},
		{server.Object, `{"type":"assistant","message":{"role":"assistant","model":"m","content":[{"type":"tool_use","id":"t","name":"Edit","input":{"file_path":"C:\\a\\b.go"}}]}}`,
			[]string{"edit <C:/a/b.go>", `tool Edit C:\a\b.go`}},
		{server.Object, `{"type":"ai-title","aiTitle":"A title"}`, []string{"title A title"}},
		{server.Object, attachment(`"type":"file","filename":"/a/b.go","content":{"type":"text","file":{"filePath":"/a/b.go","content":"package b"}}`),
			[]string{"read </a/b.go>", "other package b\n/a/b.go"}},
		{server.Object, attachment(`"type":"file","filename":"/a/p.png","content":{"type":"image","file":{"base64":"iVBOR"}}`),
			[]string{"read </a/p.png>", "other /a/p.png"}},
		{server.Object, attachment(`"type":"x_new","payload":"` + strings.Repeat("QUJD", 300) + `","note":"short"`), []string{"other short"}},
		{server.Object, attachment(`"type":"hook_success","hookName":"Stop","command":"run it","toolUseID":"t","content":"all fine","stdout":"all fine","stderr":""`),
			[]string{"other all fine"}},
		{server.Object, attachment(`"type":"diagnostics","files":[{"uri":"file:///a","diagnostics":[{"message":"undefined: x"}]}]`),
			[]string{"other undefined: x\nfile:///a"}},
		{server.Object, attachment(`"type":"queued_command","commandMode":"prompt","prompt":"and then?"`), []string{"prompt and then?"}},
		{server.Object, attachment(`"type":"queued_command","commandMode":"task-notification","prompt":"it ended"`), []string{"message it ended"}},
		{server.Object, `{"type":"user","isMeta":true,"message":{"role":"user","content":"<teammate-message teammate_id=\"tester\">all green</teammate-message>"}}`,
			[]string{"message all green"}},
		{server.Object, `{"type":"user","isMeta":true,"origin":{"kind":"channel","server":"telegram"},"message":{"role":"user","content":"deploy"}}`,
			[]string{"prompt deploy"}},
		{server.Object, `{"type":"user","isMeta":true,"turnOrigin":"scheduled","message":{"role":"user","content":"look"}}`, []string{"message look"}},
		{server.Object, `{"type":"user","toolUseResult":{"questions":[{}],"answers":{"Which?":"neither"}},"message":{"role":"user","content":[` +
			`{"type":"tool_result","tool_use_id":"t","content":"answered"}]}}`, []string{"prompt neither", "result answered"}},
		{server.Object, `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":` +
			`"The user doesn't want to proceed with this tool use. The user said:\nkeep it"}]}}`,
			[]string{"prompt keep it", "error The user doesn't want to proceed with this tool use. The user said:\nkeep it",
				"result The user doesn't want to proceed with this tool use. The user said:\nkeep it"}},
		{server.Object, `{"type":"assistant","message":{"role":"assistant","content":[{"type":"advisor_tool_result","tool_use_id":"t","content":` +
			`{"type":"advisor_result","text":"take the second"}}]}}`, []string{"result take the second"}},
		{server.Object, attachment(`"type":"skill_listing","content":"all skills"`), nil},
		{server.Object, attachment(`"type":"deferred_tools_delta","addedNames":["x"]`), nil},
		{server.Object, attachment(`"type":"agent_listing_delta","addedTypes":["x"]`), nil},
		{server.Object, attachment(`"type":"mcp_instructions_delta","addedBlocks":["x"]`), nil},
		{server.Object, attachment(`"type":"prompt_snapshot","system":"you are"`), nil},
		{server.Object, `{"type":"attachment","attachment":"odd"}`, []string{"other odd"}},
		{server.Object, snapshot(`"new.go":{"version":1,"backupTime":"2026-01-20T15:50:50.862Z"},"also.go":{"backupTime":"2026-01-20T15:50:50.861Z"},` +
			`"old.go":{"backupTime":"2026-01-20T15:46:06.217Z"},"timeless.go":{}`), []string{"other also.go\nnew.go\ntimeless.go"}},
		{server.Object, snapshot(`"first.go":{"backupTime":"2026-01-20T15:51:00Z"},"second.go":{"backupTime":"2026-01-20T15:52:00Z"}`), []string{"other second.go"}},
		{server.Object, snapshot(`"old.go":{"backupTime":"2026-01-20T15:46:06.217Z"}`), nil},
		{server.Object, snapshot(``), nil},
		{server.Object, `{"type":"file-history-snapshot","snapshot":[1]}`, nil},
		{server.Object, `{"type":"queue-operation","operation":"enqueue","content":"and the docs"}`, []string{"other and the docs"}},
		{server.Object, `{"type":"queue-operation","operation":"popAll","content":"and the docs"}`, nil},
		{server.Object, `{"type":"queue-operation","operation":"enqueue","content":"<task-notification>done</task-notification>"}`, nil},
		{server.Object, `{"type":"file-history-delta","messageId":"m","trackingPath":"cart.go","backup":{}}`, []string{"other cart.go"}},
		{server.Opaque, `garbage {"type":"user","message":{"role":"user","content":"recovered"}}`, []string{"prompt recovered"}},
		{server.Oversize, `{"type":"user","message":{"role":"user","content":"a note"}}`, nil},
		{server.Object, `{"type":"user","message":{"role":"user","content":"` + long + `"}}`, []string{"prompt " + long[:256<<10]}},
	} {
		got := derive.TextsOf(server.Line{Index: 7, Kind: test.kind, Raw: []byte(test.raw)})
		if len(got) != len(test.want) {
			t.Errorf("%.200s: %d texts, want %d", test.raw, len(got), len(test.want))
			continue
		}
		for i, x := range got {
			kit.Check(t, x.Kind+" "+x.Text == test.want[i] && x.Line == 7, "%.200s: %s %.100q of line %d, want %.100q",
				test.raw, x.Kind, x.Text, x.Line, test.want[i])
		}
	}
}
