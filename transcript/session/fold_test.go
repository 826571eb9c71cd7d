package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript"
	. "github.com/ccship/ccship/transcript/session"
)

// chain makes lines of a conversation without end: a prompt, an answer with a call, its result, an answer, for ever.
type hashChain struct {
	n      int
	parent string
}

func (c *hashChain) line(typ, message string) []byte {
	c.n++
	uuid := fmt.Sprintf("%08d-0000-4000-8000-000000000000", c.n)
	parent := "null"
	if c.parent != "" {
		parent = `"` + c.parent + `"`
	}
	c.parent = uuid
	at := time.Date(2026, 8, 20, 9, 0, c.n, 0, time.UTC).Format(time.RFC3339Nano)
	return []byte(fmt.Sprintf(`{"parentUuid":%s,"isSidechain":false,"type":%q,"message":%s,"uuid":%q,"timestamp":%q,%s}`,
		parent, typ, message, uuid, at, fmt.Sprintf(env, session1, "2.1.235")))
}

// next is a prompt, a call, its result or an answer, in turns.
func (c *hashChain) next() []byte {
	usage := `"usage":{"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":1000}`
	switch c.n % 4 {
	case 0:
		return c.line("user", fmt.Sprintf(`{"role":"user","content":"prompt %d"}`, c.n))
	case 1:
		return c.line("assistant", fmt.Sprintf(`{"id":"msg_%d","model":"claude-sonnet-5",%s,"content":[{"type":"tool_use","id":"toolu_%d","name":"Read","input":{"file_path":"/f%d"}}]}`, c.n, usage, c.n, c.n))
	case 2:
		return c.line("user", fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":"ok"}]}`, c.n-1))
	}
	return c.line("assistant", fmt.Sprintf(`{"id":"msg_%d","model":"claude-sonnet-5",%s,"content":[{"type":"text","text":"answer"}]}`, c.n, usage))
}

// TestFoldIsBounded folds 100 000 records: counts are exact, the state stays small, and enough is kept.
func TestFoldIsBounded(t *testing.T) {
	const lines = 40_000
	var c hashChain
	var s Fold
	var log Log
	largest := 0
	for i := range lines {
		for _, e := range s.Add(int64(i), transcript.Parse(c.next())) {
			kit.Require(t, e.Kind != RewindEvent, "line %d: a rewind", i)
			log.Add(e)
		}
		if i%5000 == 0 {
			state, _ := s.MarshalBinary()
			largest = max(largest, len(state))
		}
	}
	kit.Check(t, largest <= 64<<10, "the state grew to %d bytes", largest)
	sum := s.Summary()
	got := []int64{sum.Prompts, sum.Answers, sum.Tools, sum.Turns, sum.Usage.Output}
	diff := cmp.Diff([]int64{lines / 4, lines / 2, lines / 4, lines / 4, lines}, got)
	kit.Check(t, diff == "", "prompts, answers, tools, turns, output (-want +got):\n%s", diff)
	kit.Equal(t, "the log has messages", log.Len(), DefaultLogSize)
	restored := restore(t, &s)
	diff = cmp.Diff(sum, restored.Summary())
	kit.Check(t, diff == "", "summary after restore (-want +got):\n%s", diff)
}

// TestFoldIgnoresOldCopies appends a history again that is much longer than the tree, as a compaction does.
func TestFoldIgnoresOldCopies(t *testing.T) {
	var c hashChain
	var s Fold
	var lines [][]byte
	for range 12_000 {
		lines = append(lines, c.next())
	}
	for i, line := range lines {
		s.Add(int64(i), transcript.Parse(line))
	}
	want := s.Summary()
	s = *restore(t, &s)
	for i, line := range lines {
		if events := s.Add(int64(len(lines)+i), transcript.Parse(line)); len(events) > 0 {
			t.Fatalf("the copy of line %d brought %+v", i, events[0])
		}
	}
	kit.Same(t, "summary after copies", cmp.Diff(want, s.Summary()))
	events := s.Add(24_000, transcript.Parse(c.next()))
	kit.Check(t, len(events) != 0, "what came after the copies brought nothing")
}

// TestRewindFarBack goes back behind what the tree has dropped: prompts and their parents are kept.
func TestRewindFarBack(t *testing.T) {
	var c hashChain
	var s Fold
	var target string
	for i := range 3000 {
		s.Add(int64(i), transcript.Parse(c.next()))
		if i == 399 {
			target = c.parent
		}
	}
	c.parent = target
	for c.n%4 != 0 {
		c.n++
	}
	var found *Rewind
	for _, e := range s.Add(3000, transcript.Parse(c.next())) {
		if e.Kind == RewindEvent {
			found = e.Rewind
		}
	}
	kit.Check(t, found != nil && found.ToLine == 399 && found.FromLine == 2999 && found.To == target,
		"the rewind is %+v", found)
}

// TestTreeDeepChain walks a chain of 100 000 records from its end, with a loop at its root.
func TestTreeDeepChain(t *testing.T) {
	var c hashChain
	var tree Tree
	c.parent = fmt.Sprintf("%08d-0000-4000-8000-000000000000", 3) // the third record is the first one's parent
	var second string
	for i := range 100_000 {
		r := transcript.Parse(c.next())
		if rewind := tree.Add(int64(i), &r); rewind != nil {
			t.Fatalf("line %d: %+v", i, *rewind)
		}
		if i == 3 {
			second = c.parent
		}
	}
	c.parent = second
	r := transcript.Parse(c.next())
	rewind := tree.Add(100_000, &r)
	if rewind == nil || rewind.ToLine != 3 || tree.Abandoned(99_999) != 1 || tree.Abandoned(3) != 0 {
		t.Fatalf("the rewind is %+v, line 99999 is abandoned by %d", rewind, tree.Abandoned(99_999))
	}
	for line, want := range []int64{0, 0, 0, 0, 1} {
		kit.Equal(t, fmt.Sprintf("line %d is abandoned by", line), tree.Abandoned(int64(line)), want)
	}
}

// TestRewindWaitsForParent sees a prompt before its parent.
func TestRewindWaitsForParent(t *testing.T) {
	line := func(uuid, parent, typ, content string) transcript.Record {
		return transcript.Parse([]byte(fmt.Sprintf(`{"type":%q,"uuid":%q,"parentUuid":%q,"message":{"id":%q,"content":%q}}`, typ, uuid, parent, uuid, content)))
	}
	var s Fold
	s.Add(0, line("a", "", "user", "one"))
	s.Add(1, line("b", "a", "assistant", "answer"))
	for _, e := range s.Add(2, line("d", "c", "user", "two, edited")) {
		kit.Require(t, e.Kind != RewindEvent, "decided without the parent")
	}
	s = *restore(t, &s)
	var found *Rewind
	for _, e := range s.Add(3, transcript.Parse([]byte(`{"type":"system","uuid":"c","parentUuid":"a"}`))) {
		if e.Kind == RewindEvent {
			found = e.Rewind
		}
	}
	kit.Check(t, found != nil && found.Line == 2 && found.ToLine == 0 && found.To == "c", "the parent brought %+v", found)
}

// TestStateIsChecked decodes states that are not valid.
func TestStateIsChecked(t *testing.T) {
	var c hashChain
	var s Fold
	var log Log
	for i := range 40 {
		for _, e := range s.Add(int64(i), transcript.Parse(c.next())) {
			log.Add(e)
		}
	}
	state, _ := s.MarshalBinary()
	messages, _ := log.MarshalBinary()
	for cut := range state {
		var broken Fold
		err := broken.UnmarshalBinary(state[:cut])
		kit.Require(t, errors.Is(err, ErrState), "a state cut at %d: %v", cut, err)
	}
	for cut := range messages {
		var broken Log
		if err := broken.UnmarshalBinary(messages[:cut]); !errors.Is(err, ErrState) || broken.Len() != 0 {
			t.Fatalf("a log cut at %d: %v, %d messages", cut, err, broken.Len())
		}
	}
	for _, bad := range [][]byte{nil, {99}, append(append([]byte{}, state...), 0)} {
		fresh := Fold{Budget: BudgetOptions{Stated: 7}}
		err := fresh.UnmarshalBinary(bad)
		kit.Check(t, errors.Is(err, ErrState) && fresh.Budget.Stated == 7, "%.8q: %v, budget %+v", bad, err, fresh.Budget)
	}
}

// TestLog pages through the log, and rewinds.
func TestLog(t *testing.T) {
	var log Log
	for i := range 250 {
		log.Add(Event{Kind: PromptEvent, Line: int64(i), Text: fmt.Sprint(i)})
	}
	texts := func(limit, offset int) (out []string) {
		for _, m := range log.Messages(limit, offset) {
			out = append(out, m.Content)
		}
		return out
	}
	for _, tt := range []struct {
		limit, offset int
		want          []string
	}{
		{2, 0, []string{"248", "249"}}, {2, 3, []string{"245", "246"}}, {2, 199, []string{"50"}}, {2, 200, nil}, {2, 1 << 30, nil},
	} {
		diff := cmp.Diff(tt.want, texts(tt.limit, tt.offset))
		kit.Check(t, diff == "", "limit %d, offset %d (-want +got):\n%s", tt.limit, tt.offset, diff)
	}
	if log.Len() != DefaultLogSize || len(texts(0, 0)) != DefaultLogSize {
		t.Errorf("%d messages", log.Len())
	}
	log.Add(Event{Kind: RewindEvent, Line: 250, Rewind: &Rewind{Number: 1, ToLine: 200, Left: []Span{{201, 249}}}})
	got := texts(1, 0)
	kit.Check(t, log.Len() == 151 && got[0] == "200", "after the rewind: %d messages, the last is %q", log.Len(), got)
	log.Add(Event{Kind: PromptEvent, Line: 250, Text: "again"})
	log.Add(Event{Kind: RewindUndoneEvent, Line: 251, Rewind: &Rewind{Number: 1}})
	if diff := cmp.Diff([]string{"249", "again"}, texts(2, 0)); diff != "" || log.Len() != DefaultLogSize {
		t.Errorf("after the rewind was undone: %d messages (-want +got):\n%s", log.Len(), diff)
	}
	log.Clear()
	kit.Equal(t, "messages after Clear", log.Len(), 0)
}

// TestToolLimits cuts inputs at 300 and outputs at 500 characters, on character boundaries, and states the total.
func TestToolLimits(t *testing.T) {
	korean := strings.Repeat("가", 600)
	escaped := strings.Repeat(`\n\u00e9\ud83d\ude00`, 200) // 600 characters
	outputs, told := 0, 0
	var s Fold
	s.Add(0, transcript.Parse([]byte(`{"type":"assistant","uuid":"a","message":{"id":"m","content":[{"type":"tool_use","id":"t1","name":"x","input":{"a":"`+korean+`","n":[1]}}]}}`)))
	for content, want := range map[string]string{
		`"` + korean + `"`:                            strings.Repeat("가", 500) + "... (600 chars total)",
		`"` + escaped + `"`:                           strings.Repeat("\né😀", 166) + "\né... (600 chars total)",
		`[{"type":"text","text":"` + korean + `"}]`:   strings.Repeat("가", 500) + "... (600 chars total)",
		`"` + strings.Repeat("x", 500) + `"`:          strings.Repeat("x", 500),
		`"` + strings.Repeat(`\"`, 500) + `"`:         strings.Repeat(`"`, 500),
		`[{"type":"image"},{"type":"text","text":1}]`: "[image]\n",
	} {
		outputs++
		r := transcript.Parse([]byte(`{"type":"user","uuid":"` + fmt.Sprint(outputs) + `","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":` + content + `}]}}`))
		for _, e := range s.Add(1, r) {
			if e.Kind != ToolCompleteEvent {
				continue
			}
			if told++; e.Text != want {
				t.Errorf("output of %.30s is %q", content, e.Text)
			}
		}
	}
	kit.Equal(t, "outputs told", told, outputs)
	input := transcript.ToolInput("x", []byte(`{"a":"`+korean+`","n":[1]}`), 0)
	want := `{"a":"` + strings.Repeat("가", 300) + `... (600 chars total)","n":[1]}`
	kit.Check(t, string(input) == want && json.Valid(input), "input is %s", input)
}

// TestTitles: a session is called what a user named it, else as its plan, else as its first prompt that says something,
// else what another said first, with the name of who it was.
func TestTitles(t *testing.T) {
	prompt := func(text string) string {
		return `{"type":"user","uuid":"` + text[:2] + `","message":{"role":"user","content":` + strconv.Quote(text) + `}}`
	}
	const (
		command = `{"type":"user","message":{"role":"user","content":"<command-message>init</command-message>\n<command-name>/init</command-name>"}}`
		planned = `{"type":"assistant","message":{"id":"m1","role":"assistant","model":"m","content":[{"type":"tool_use","id":"t1","name":"ExitPlanMode","input":{"plan":"# Count in cents\n\n1. Cart"}}]}}`
		answer  = `{"type":"assistant","uuid":"a1","message":{"id":"m2","role":"assistant","model":"m","content":[{"type":"text","text":"# The shop\n\nIt sells."}]}}`
		timed   = `{"type":"user","uuid":"t1","isMeta":true,"turnOrigin":"scheduled","message":{"role":"user","content":"look at **the** deploy\nand say"}}`
		called  = `{"type":"user","uuid":"t2","message":{"role":"user","content":"<scheduled-task name=\"nightly\">/deploy</scheduled-task>"}}`
		ended   = `{"type":"user","uuid":"t3","origin":{"kind":"task-notification"},"message":{"role":"user","content":"<task-notification><task-id>b7</task-id><status>completed</status><summary>Tests ended</summary></task-notification>"}}`
		named   = `{"type":"ai-title","aiTitle":"Cents in the cart","sessionId":"s"}`
	)
	for name, x := range map[string]struct {
		lines []string
		want  string
	}{
		"a command alone":           {[]string{command}, ""},
		"a command, then a prompt":  {[]string{command, prompt("fix **the** cart")}, "fix the cart"},
		"a command and its answer":  {[]string{command, answer}, "/init: The shop"},
		"a picture and its answer":  {[]string{prompt("[Image #1]"), answer}, "[Image #1]: The shop"},
		"a schedule":                {[]string{timed, answer}, "Scheduled task: look at the deploy and say"},
		"a schedule with a name":    {[]string{called, answer, timed}, "Scheduled task nightly: /deploy"},
		"a background task":         {[]string{ended, answer}, "Background task: Tests ended"},
		"a schedule, then a prompt": {[]string{timed, answer, prompt("fix the cart")}, "fix the cart"},
		"a picture, then a prompt":  {[]string{prompt("[Image #1]"), prompt("why red?")}, "why red?"},
		"a plan":                    {[]string{prompt("fix the cart"), planned}, "Count in cents"},
		"an accepted plan":          {[]string{prompt("Implement the following plan:\n\n# In cents\n\nAll.")}, "In cents"},
		"a title of Claude":         {[]string{prompt("fix the cart"), planned, named}, "Cents in the cart"},
	} {
		var f Fold
		for i, line := range x.lines {
			f.Add(int64(i), transcript.Parse([]byte(line)))
		}
		kit.Equal(t, name, f.Summary().Title, x.want)
	}
}

func fuzzSeeds(f *testing.F) {
	for _, file := range fixtures(f) {
		lines := fixture(f, file)
		f.Add(bytes.Join(lines, []byte("\n")))
	}
	f.Add([]byte(`{"type":"user","message":{"content":[{"type":"tool_result","content":[{"type":"tool_result","content":[{}]}]}]`))
	f.Add([]byte("{\"type\":\"assistant\",\"message\":{\"usage\":{\"input_tokens\":99999999999999999999,\"output_tokens\":-1e9}}}\n{\"\\u"))
}

// FuzzFold folds anything: it never panics, stays bounded, and a decoded state continues like the original.
func FuzzFold(f *testing.F) {
	fuzzSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var s Fold
		var log Log
		var tree Tree
		for i, line := range bytes.Split(data, []byte("\n")) {
			r := transcript.Parse(line)
			copied := restore(t, &s)
			events := s.Add(int64(i), r)
			diff := cmp.Diff(append([]Event(nil), events...), append([]Event(nil), copied.Add(int64(i), r)...))
			kit.Require(t, diff == "", "line %d (-session +restored):\n%s", i, diff)
			for _, e := range events {
				log.Add(e)
			}
			tree.Add(int64(i), &r)
		}
		s.Summary()
		if log.Len() > DefaultLogSize {
			t.Errorf("%d messages", log.Len())
		}
		state, _ := log.MarshalBinary()
		var again Log
		kit.Must(t, again.UnmarshalBinary(state))
		var broken Fold
		_ = broken.UnmarshalBinary(data)
		_ = broken.Add(0, transcript.Parse(data))
	})
}

// The limits of a session and the size of a log are those they are given, also of a state that is read again.
func TestConfiguredLimits(t *testing.T) {
	s, log := Fold{InputLimit: 5, OutputLimit: 7}, Log{Size: 3}
	add := func(line int64, text string) {
		for _, e := range s.Add(line, transcript.Parse([]byte(text))) {
			log.Add(e)
		}
	}
	call := func(n int) {
		add(int64(2*n), fmt.Sprintf(`{"type":"assistant","uuid":"a%d","message":{"id":"m%[1]d","role":"assistant","model":"m","content":[{"type":"tool_use","id":"t%[1]d","name":"Other","input":{"x":%q}}]}}`, n, strings.Repeat("i", 9)))
		add(int64(2*n+1), fmt.Sprintf(`{"type":"user","uuid":"r%d","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%[1]d","content":%q}]}}`, n, strings.Repeat("o", 9)))
	}
	for n := range 5 {
		call(n)
	}
	state, _ := s.MarshalBinary()
	kept, _ := log.MarshalBinary()
	kit.Must(t, s.UnmarshalBinary(state))
	kit.Must(t, log.UnmarshalBinary(kept))
	call(5)
	messages := log.Messages(0, 0)
	kit.Require(t, len(messages) == 3, "%d messages", len(messages))
	for _, m := range messages {
		if string(m.ToolInput) != `{"x":"iiiii... (9 chars total)"}` || m.Output != "ooooooo... (9 chars total)" {
			t.Errorf("input %s, output %q", m.ToolInput, m.Output)
		}
	}
	log.Size = MaxLogSize + 500
	for n := range MaxLogSize + 10 {
		call(n + 10)
	}
	kit.Equal(t, "messages", log.Len(), MaxLogSize)
}
