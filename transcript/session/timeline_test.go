package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript"
)

var start = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

// script writes records that hang off one another.
type script struct {
	lines []string
	mode  string
}

func (s *script) add(at float64, record string) *script {
	n := len(s.lines)
	parent := "null"
	if n > 0 {
		parent = fmt.Sprintf(`"u%d"`, n-1)
	}
	stamp := start.Add(time.Duration(at * float64(time.Second))).Format("2006-01-02T15:04:05.000Z")
	s.lines = append(s.lines, fmt.Sprintf(
		`{"uuid":"u%d","parentUuid":%s,"sessionId":"S","isSidechain":false,"timestamp":%q,%s}`, n, parent, stamp, record))
	return s
}

func (s *script) prompt(at float64, text string) *script {
	mode := s.mode
	if mode == "" {
		mode = "default"
	}
	return s.add(at, fmt.Sprintf(`"type":"user","permissionMode":%q,"message":{"role":"user","content":%q}`, mode, text))
}

func (s *script) call(at float64, id, tool, input string) *script {
	return s.add(at, fmt.Sprintf(`"type":"assistant","message":{"id":"m%d","role":"assistant","model":"claude-x","content":[`+
		`{"type":"tool_use","id":%q,"name":%q,"input":%s}]}`, len(s.lines), id, tool, input))
}

func (s *script) result(at float64, id, text string, failed bool, more string) *script {
	if more == "" {
		more = `"ok"`
	}
	return s.add(at, fmt.Sprintf(`"type":"user","message":{"role":"user","content":[`+
		`{"type":"tool_result","tool_use_id":%q,"content":%q,"is_error":%t}]},"toolUseResult":%s`, id, text, failed, more))
}

func (s *script) answer(at float64, text string) *script {
	return s.add(at, fmt.Sprintf(`"type":"assistant","message":{"id":"m%d","role":"assistant","model":"claude-x",`+
		`"stop_reason":"end_turn","content":[{"type":"text","text":%q}]}`, len(s.lines), text))
}

func (s *script) ended(at, took float64) *script {
	return s.add(at, fmt.Sprintf(`"type":"system","subtype":"turn_duration","durationMs":%d`, int(took*1000)))
}

// moments are the timeline, one line each.
func (s *script) moments() string {
	var t TimelineReader
	for i, l := range s.lines {
		t.Line(int64(i), []byte(l))
	}
	return show(t.Moments())
}

func show(list []Moment) string {
	var out []string
	for _, m := range list {
		line := fmt.Sprintf("%d %s %s", m.Line, m.Kind, m.Text)
		if m.From != "" {
			line += " from " + m.From
		}
		if m.Took > 0 {
			line += fmt.Sprintf(" took %gs", float64(m.Took)/1000)
		}
		if m.Waited > 0 {
			line += fmt.Sprintf(" waited %gs", float64(m.Waited)/1000)
		}
		if m.MayWait {
			line += " may wait"
		}
		if m.Running {
			line += " running"
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

const bash = `{"command":"make test"}`

// TestDurations: what a turn and its calls took, without the waits that the records tell.
func TestDurations(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name string
		of   *script
		want string
	}{
		{"a short turn", (&script{}).prompt(0, "hi").answer(3, "hello"), "0 prompt hi took 3s"},
		{"still running", (&script{}).prompt(0, "hi"), "0 prompt hi running"},
		{"the record says that nothing waited",
			(&script{}).prompt(0, "go").call(1, "a", "Bash", bash).result(61, "a", "ok", false, "").answer(62, "done").ended(62.1, 62.1),
			"0 prompt go took 62.1s\n2 tool make test took 60s"},
		{"the user was away for nine minutes",
			(&script{}).prompt(0, "go").call(1, "a", "Bash", bash).result(541, "a", "ok", false, "").answer(543, "done").ended(543, 8),
			"0 prompt go took 8s waited 535s\n2 tool make test took 5s waited 535s"},
		{"two calls of which either may have waited",
			(&script{}).prompt(0, "go").call(1, "a", "Bash", bash).result(101, "a", "ok", false, "").
				call(102, "b", "Bash", `{"command":"ls"}`).result(202, "b", "ok", false, "").answer(203, "done").ended(203, 120),
			"0 prompt go took 120s waited 83s\n2 tool make test took 100s may wait\n4 tool ls took 100s may wait"},
		{"no record tells",
			(&script{}).prompt(0, "go").call(1, "a", "Bash", bash).result(541, "a", "ok", false, "").answer(543, "done"),
			"0 prompt go took 543s may wait\n2 tool make test took 540s may wait"},
		{"nobody is asked in this mode",
			(&script{mode: "bypassPermissions"}).prompt(0, "go").call(1, "a", "Bash", bash).result(541, "a", "ok", false, "").answer(543, "done"),
			"0 prompt go took 543s\n2 tool make test took 540s"},
		{"a question waits for the user only",
			(&script{}).prompt(0, "go").call(1, "a", "AskUserQuestion", `{"questions":[]}`).result(301, "a", "yes", false, "").answer(303, "done"),
			"0 prompt go took 3s waited 300s\n2 tool [] waited 300s"},
		{"a refused call only waited",
			(&script{}).prompt(0, "go").call(1, "a", "Bash", bash).
				result(31, "a", "The user doesn't want to proceed with this tool use. The tool use was rejected", true, "").answer(33, "done"),
			"0 prompt go took 3s waited 30s\n2 refusal make test waited 30s"},
		{"the result says how long the tool ran",
			(&script{}).prompt(0, "go").call(1, "a", "WebFetch", `{"url":"https://example.invalid"}`).
				result(61, "a", "page", false, `{"durationMs":2000}`).answer(62, "done"),
			"0 prompt go took 4s waited 58s\n2 tool https://example.invalid took 2s waited 58s"},
		{"a failed call", (&script{}).prompt(0, "go").call(1, "a", "Bash", bash).result(1.5, "a", "Exit code 1\nno rule", true, "").answer(2, "no"),
			"0 prompt go took 2s\n2 error Exit code 1 no rule took 0.5s"},
		{"a turn goes on after its record", (&script{}).prompt(0, "go").answer(3, "a").ended(3, 3).answer(900, "later"),
			"0 prompt go took 3s\n3 message goes on"},
		{"a schedule's hours and a usage limit are nobody's wait",
			(&script{}).prompt(0, "go").call(1, "a", "Bash", bash).result(3, "a", "ok", false, "").answer(4, "a").ended(10004, 4).
				add(20000, `"type":"user","isMeta":true,"turnOrigin":"scheduled","message":{"content":"look"}`).answer(20005, "b").ended(20005, 5),
			"0 prompt go took 4s waited 2s\n5 message look from scheduled task took 5s"},
		{"a later duration is another turn's",
			(&script{}).prompt(0, "go").answer(3, "a").ended(3, 3).ended(900, 4), "0 prompt go took 3s"},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			got := x.of.moments()
			kit.Check(t, got == x.want, "got\n%s\nwant\n%s", got, x.want)
		})
	}
}

// TestKinds: everything that is a moment of its own.
func TestKinds(t *testing.T) {
	t.Parallel()
	s := (&script{}).prompt(0, "go").
		call(1, "a", "Task", `{"subagent_type":"Explore","description":"Find callers","prompt":"p"}`).
		result(41, "a", "26 files", false, `{"status":"completed","agentId":"a0","agentType":"Explore"}`).
		answer(42, "done").
		add(50, `"type":"user","message":{"role":"user","content":"<command-name>/model</command-name>\n<command-args>x</command-args>"}`).
		add(60, `"type":"system","subtype":"compact_boundary","content":"c","compactMetadata":{"trigger":"auto","preTokens":167000,"postTokens":9000,"durationMs":4200}`).
		prompt(70, "again").
		add(71, `"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]}`).
		prompt(80, "third").
		add(81, `"type":"assistant","isApiErrorMessage":true,"message":{"id":"e","model":"<synthetic>","role":"assistant","content":[{"type":"text","text":"API Error: 529"}]}`).
		call(82, "b", "Bash", `{"command":"git commit -m x; git push"}`).
		result(83, "b", "[main c0ffee1] x", false, `{"stdout":"","gitOperation":{"commit":{"sha":"c0ffee1","kind":"committed"},"push":{"branch":"main"}}}`).
		call(84, "c", "Bash", `{"command":"git push"}`).result(85, "c", "ok", false, `{"gitOperation":{"push":{"branch":"main"}}}`)
	want := "0 prompt go took 42s may wait\n1 agent Find callers took 40s may wait\n4 command /model x\n5 compaction auto took 4.2s\n" +
		"6 prompt again took 1s\n7 interrupt interrupted by the user\n8 prompt third took 1s\n9 error API Error: 529\n11 commit c0ffee1"
	got := s.moments()
	kit.Check(t, got == want, "got\n%s\nwant\n%s", got, want)
	var r TimelineReader
	for i, l := range s.lines {
		r.Line(int64(i), []byte(l))
	}
	list := r.Moments()
	a := list[1]
	kit.Check(t, a.Agent == "a0" && a.Tool == "Explore" && a.Turn == 1, "agent is %+v", a)
	c := list[3]
	kit.Check(t, c.Before == 167000 && c.After == 9000 && c.At.Equal(start.Add(55800*time.Millisecond)), "compaction is %+v", c)
}

// TestRewind: a rewind is a moment, and one that was none leaves nothing.
func TestRewind(t *testing.T) {
	t.Parallel()
	s := (&script{}).prompt(0, "one").answer(1, "a").prompt(2, "two").answer(3, "b")
	s.lines = append(s.lines, `{"uuid":"r","parentUuid":"u1","sessionId":"S","timestamp":"2026-11-02T09:01:00.000Z","type":"user","message":{"role":"user","content":"two, better"}}`)
	kit.Has(t, "got", s.moments(), "4 rewind back to line 2")
	s.lines = append(s.lines, `{"uuid":"x","parentUuid":"u3","sessionId":"S","timestamp":"2026-11-02T09:02:00.000Z","type":"assistant","message":{"id":"mx","role":"assistant","model":"claude-x","content":[{"type":"text","text":"goes on"}]}}`)
	got := s.moments()
	kit.Check(t, !strings.Contains(got, "rewind"), "two writers:\n%s", got)
}

// TestInPieces: a Builder that continues from the state of another comes to the same, and its state is bounded.
func TestInPieces(t *testing.T) {
	t.Parallel()
	whole, pieces := map[string]Moment{}, map[string]Moment{}
	var most int
	run := func(lines []string, every int, into map[string]Moment) {
		var fold Fold
		var b TimelineBuilder
		for i, l := range lines {
			r := transcript.Parse([]byte(l))
			for _, m := range b.Add(int64(i), &r, fold.Add(int64(i), r)) {
				key := fmt.Sprintf("%08d.%d", m.Line, m.Part)
				if into[key] = m; m.Gone {
					delete(into, key)
				}
			}
			if i%every == every-1 {
				state := kit.Try(b.MarshalBinary()).Must(t)
				most = max(most, len(state))
				b = TimelineBuilder{}
				kit.Must(t, b.UnmarshalBinary(state))
			}
		}
	}
	s := &script{}
	long := strings.Repeat("long words ", 1000)
	for i := range 30 {
		at := float64(1000 * i)
		s.prompt(at, long)
		for k := range 70 {
			id := fmt.Sprintf("t%d.%d", i, k)
			s.call(at+float64(k), id, "Bash", fmt.Sprintf(`{"command":%q}`, long))
			if k%2 == 0 {
				s.result(at+float64(k)+12, id, long, k%3 == 0, "")
			}
		}
		s.call(at+200, fmt.Sprint("g", i), "Task", fmt.Sprintf(`{"subagent_type":%q,"description":%q}`, long, long))
		s.answer(at+300, "ok")
	}
	run(s.lines, len(s.lines)+1, whole)
	run(s.lines, 7, pieces)
	if a, b := timelineList(whole), timelineList(pieces); a != b || len(whole) < 30*30 {
		t.Errorf("%d moments at once, %d in pieces; equal: %t", len(whole), len(pieces), a == b)
	}
	kit.Check(t, most <= 64<<10, "a state has %d bytes", most)
	err := new(TimelineBuilder).UnmarshalBinary([]byte("\x01\x02"))
	kit.Check(t, err != nil, "damaged state is taken")
}

func timelineList(all map[string]Moment) string {
	var out []Moment
	for _, m := range all {
		out = append(out, m)
	}
	slices.SortFunc(out, CompareMoments)
	return show(out)
}

// TestRealTimelines: in real sessions no moment has a negative time, turns that state their duration have it, and
// the timeline has every prompt of the fold.
func TestRealTimelines(t *testing.T) {
	t.Parallel()
	root := "../../../shared/transcripts"
	if _, err := os.Stat(root); err != nil {
		t.Skip("no real transcripts here")
	}
	sessions, stated := 0, 0
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".jsonl") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		sessions++
		var r TimelineReader
		n, records := int64(0), map[int64]bool{}
		for l := range bytes.Lines(data) {
			var x struct {
				Subtype  string
				Duration float64 `json:"durationMs"`
			}
			if json.Unmarshal(l, &x) == nil && x.Subtype == "turn_duration" {
				records[int64(x.Duration)] = true
			}
			r.Line(n, bytes.TrimSuffix(l, []byte("\n")))
			n++
		}
		for _, m := range r.Moments() {
			kit.Check(t, m.Took >= 0 && m.Waited >= 0 && m.Line >= 0 && m.Line < n, "%s: %+v", path, m)
			if m.Kind == TimelinePrompt && records[m.Took] {
				stated++
			}
		}
		return nil
	})
	kit.Check(t, err == nil && sessions >= 20 && stated >= 20, "%v %v %v", err, sessions, stated)
}

// TestRefusedLink: what ccship did not link is not linked in the timeline, although Claude's tool said so.
func TestRefusedLink(t *testing.T) {
	link := func(s *script, id, path string) {
		s.call(1, id, "mcp__plugin_ccship_ccship__link_document", fmt.Sprintf(`{"path":%q}`, path)).
			result(1.2, id, fmt.Sprintf(`{"action":"link","path":%q}`, path), false, "")
	}
	s := (&script{}).prompt(0, "go")
	link(s, "a", "a.md")
	link(s, "b", "b: c.md")
	s.add(2, `"type":"attachment","attachment":{"type":"hook_additional_context","content":[`+
		`"[Document not linked]\n- b: c.md: it is too large; split it\n[Document linked]\n- a.md"]}`)
	const want = "0 prompt go running\n2 document linked a.md\n4 document not linked b: c.md: it is too large; split it"
	got := s.moments()
	kit.Check(t, got == want, "got\n%s\nwant\n%s", got, want)
}

// TestForget: the oldest go, visible or hidden ones as asked, and the others keep their order, whatever lies between them.
func TestForget(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var l Log
		for i := range rng.IntN(12) {
			l.messages = append(l.messages, logEntry{Message: Message{Line: int64(i)}, hidden: int64(rng.IntN(2))})
		}
		n, hidden := rng.IntN(8)-1, rng.IntN(2) == 0
		var want []int64
		left := n
		for _, m := range l.messages {
			if left > 0 && (m.hidden != 0) == hidden {
				left--
				continue
			}
			want = append(want, m.Line)
		}
		l.forget(n, hidden)
		var got []int64
		for _, m := range l.messages {
			got = append(got, m.Line)
		}
		kit.Require(t, slices.Equal(got, want), "forgetting %d, hidden %t, keeps %v, want %v", n, hidden, got, want)
	}
}
