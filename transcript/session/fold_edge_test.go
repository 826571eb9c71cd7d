package session_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript"
	. "github.com/ccship/ccship/transcript/session"
)

// fold adds records, one on a line, that are written short: "type uuid parent text", "-" for no parent.
func fold(t *testing.T, s *Fold, records ...string) (events []Event) {
	t.Helper()
	for i, short := range records {
		events = append(events, s.Add(int64(i), record(short))...)
	}
	return events
}

func record(short string) transcript.Record {
	f := strings.SplitN(short+"   ", " ", 4)
	typ, subtype, _ := strings.Cut(f[0], "/")
	line := fmt.Sprintf(`{"type":%q,"subtype":%q,"uuid":%q,"parentUuid":%q,"sessionId":"S","message":{"id":%q,"content":%q}}`,
		typ, subtype, f[1], strings.Trim(f[2], "-"), f[1], strings.TrimSpace(f[3]))
	return transcript.Parse([]byte(line))
}

// TestRewindShapes finds rewinds in trees that are easy to misread.
func TestRewindShapes(t *testing.T) {
	for _, tt := range []struct {
		name    string
		records []string
		want    []int64 // the lines gone back to
	}{
		{"late attachment on an older message", []string{
			"user 1 - one", "assistant 2 1 a", "user 3 2 two", "assistant 4 3 b", "attachment 5 1", "user 6 2 two again",
		}, []int64{1}},
		{"a copy with another parent", []string{
			"user 1 - one", "assistant 2 1 a", "system/compact_boundary 3 -", "assistant 2 3 a", "assistant 4 3 b", "user 5 2 two",
		}, []int64{2}},
		{"from one given up branch to the other", []string{
			"user 1 - one", "assistant 2 1 a", "user 3 2 two", "user 4 2 three", "user 5 2 four", "assistant 6 5 b",
		}, []int64{1, 1}},
		{"only tools", []string{"user 1 - one", "assistant 2 1", "assistant 3 2", "user 4 2 two"}, nil},
		{"meta prompt", []string{"user 1 - one", "assistant 2 1 a", "system 3 2", "system 4 2", "user 5 4 two"}, nil},
		{"no message in common", []string{"user 1 - one", "assistant 2 1 a", "user 3 - two"}, []int64{-1}},
		{"loop", []string{"user 1 2 one", "assistant 2 1 a", "user 3 3 two"}, nil},
		{"a record of an unknown parent in between", []string{
			"user 1 - one", "assistant 2 1 a", "user 3 2 two", "progress 4 x", "user 5 4 three",
		}, nil},
		{"several such records", []string{
			"user 1 - one", "assistant 2 1 a", "progress 3 x", "attachment 4 y", "user 5 4 two", "assistant 6 5 b", "user 7 3 three",
		}, []int64{1}},
		{"back to what is before such a record", []string{
			"user 1 - one", "assistant 2 1 a", "progress 3 x", "user 4 3 two", "assistant 5 4 b", "user 6 2 three",
		}, []int64{1}},
		{"an answer of an unknown parent", []string{
			"user 1 - one", "assistant 2 x a", "user 3 2 two", "assistant 4 3 b", "user 5 1 one again",
		}, []int64{0}},
		{"a prompt of an unknown parent", []string{
			"user 1 - one", "assistant 2 1 a", "user 3 x two", "assistant 4 3 b", "user 5 2 three",
		}, []int64{1}},
		{"a parent after its child", []string{
			"user 1 - one", "assistant 2 1 a", "user 3 2 two", "assistant 4 3 b", "user 6 5 three", "progress 5 2",
		}, []int64{1}},
		{"a copy of a record of an unknown parent", []string{
			"user 1 - one", "assistant 2 1 a", "progress 3 x", "progress 3 x", "user 4 3 two",
		}, nil},
		{"a file that begins with an unknown parent", []string{
			"user 1 x one", "assistant 2 1 a", "user 3 2 two", "assistant 4 3 b", "user 5 2 two again",
		}, []int64{1}},
	} {
		var s, stored Fold
		var got, again []int64
		for i, short := range tt.records {
			got = append(got, goneBackTo(s.Add(int64(i), record(short)))...)
			again = append(again, goneBackTo(stored.Add(int64(i), record(short)))...)
			state, _ := stored.MarshalBinary()
			stored = Fold{}
			kit.Must(t, stored.UnmarshalBinary(state))
		}
		diff := cmp.Diff(tt.want, got)
		kit.Check(t, diff == "", "%s (-want +got):\n%s", tt.name, diff)
		diff = cmp.Diff(tt.want, again)
		kit.Check(t, diff == "", "%s, stored after each record (-want +got):\n%s", tt.name, diff)
	}
}

// goneBackTo are the lines that rewinds went back to.
func goneBackTo(events []Event) (lines []int64) {
	for _, e := range events {
		if e.Kind == RewindEvent {
			lines = append(lines, e.Rewind.ToLine)
		}
	}
	return lines
}

// TestClearedContext goes on in the same file without what was said before, which stays.
func TestClearedContext(t *testing.T) {
	said := []string{
		`{"type":"user","uuid":"1","message":{"content":"one"}}`,
		`{"type":"assistant","uuid":"2","parentUuid":"1","message":{"id":"m1","content":[{"type":"text","text":"a"}],"usage":{"input_tokens":5000,"output_tokens":9}}}`,
	}
	plan := `{"type":"user","uuid":"3","message":{"content":"Implement the plan"},"planContent":"# Plan"}`
	for _, tt := range []struct {
		name   string
		then   []string
		clears int
		back   []int64
	}{
		{"an accepted plan", []string{plan}, 1, nil},
		{"an accepted plan below what a hook wrote", []string{
			`{"type":"attachment","uuid":"h","attachment":{"type":"hook_success"}}`,
			strings.Replace(plan, `"uuid"`, `"parentUuid":"h","uuid"`, 1),
		}, 1, nil},
		{"/clear, as its hook tells", []string{
			`{"type":"attachment","uuid":"h","attachment":{"type":"hook_success","hookName":"SessionStart:clear"}}`,
			`{"type":"attachment","uuid":"i","parentUuid":"h","attachment":{"type":"hook_additional_context"}}`,
			`{"type":"user","uuid":"3","parentUuid":"i","message":{"content":"two"}}`,
		}, 1, nil},
		{"/clear, as an old hook tells", []string{
			`{"type":"progress","uuid":"h","parentUuid":null,"data":{"type":"hook_progress","hookName":"SessionStart:clear"}}`,
			`{"type":"user","uuid":"3","parentUuid":"h","message":{"content":"two"}}`,
		}, 1, nil},
		{"another hook", []string{
			`{"type":"attachment","uuid":"h","attachment":{"type":"hook_success","hookName":"SessionStart:resume"}}`,
			`{"type":"user","uuid":"3","parentUuid":"h","message":{"content":"two"}}`,
		}, 0, []int64{2}},
		{"a plan with the context kept", []string{strings.Replace(plan, `"uuid"`, `"parentUuid":"2","uuid"`, 1)}, 0, nil},
		{"the first prompt again", []string{`{"type":"user","uuid":"3","message":{"content":"one, edited"}}`}, 0, []int64{-1}},
		{"back within the plan", []string{
			plan, `{"type":"assistant","uuid":"4","parentUuid":"3","message":{"id":"m2","content":"b"}}`,
			`{"type":"user","uuid":"5","parentUuid":"4","message":{"content":"two"}}`,
			`{"type":"user","uuid":"6","parentUuid":"4","message":{"content":"three"}}`,
		}, 1, []int64{3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s Fold
			var events []Event
			var tree Tree
			for i, line := range append(slices.Clone(said), tt.then...) {
				r := transcript.Parse([]byte(strings.Replace(line, "{", `{"sessionId":"S",`, 1)))
				tree.Add(int64(i), &r)
				events = append(events, s.Add(int64(i), r)...)
			}
			clears, epoch := 0, int64(0)
			for _, e := range events {
				if e.Kind == ClearEvent {
					clears++
				}
				if e.Kind == ContextEvent {
					epoch = e.Context.Epoch
				}
			}
			kit.Check(t, clears == tt.clears && ((clears > 0) == (epoch > 0) || tt.back != nil),
				"cleared %d times, epoch %d", clears, epoch)
			kit.Same(t, "rewinds", cmp.Diff(tt.back, goneBackTo(events)))
			kit.Equal(t, "what was said before stays", tree.Abandoned(0) == 0, tt.clears > 0 || tt.back == nil)
			kit.Equal(t, "usage", s.Summary().Usage.Input, 5000)
		})
	}
}

// TestRewindOverThinnedTree goes back over messages that the tree has dropped: it must still know that something was
// said.
func TestRewindOverThinnedTree(t *testing.T) {
	var s Fold
	records := []string{"user p0 - zero", "assistant a0 p0 a", "user p1 a0 one", "assistant a1 p1 b"}
	parent := "a1"
	for i := range 6000 {
		next := fmt.Sprint("x", i)
		records = append(records, "progress "+next+" "+parent)
		parent = next
	}
	var found *Rewind
	for _, e := range fold(t, &s, append(records, "user p2 a0 one, edited")...) {
		if e.Kind == RewindEvent {
			found = e.Rewind
		}
	}
	kit.Check(t, found != nil && found.ToLine == 1, "the rewind is %+v", found)
}

// TestAnswersCountOnce repeats message ids far apart and across restarts: each counts once, with its largest output.
func TestAnswersCountOnce(t *testing.T) {
	var s Fold
	n := 0
	add := func(id, output int) {
		n++
		s.Add(int64(n), transcript.Parse([]byte(fmt.Sprintf(
			`{"type":"assistant","uuid":"u%d","message":{"id":"m%d","model":"m","usage":{"input_tokens":1,"output_tokens":%d},"content":[]}}`, n, id, output))))
	}
	for i := range 500 {
		add(i, 1)
		if i >= 100 {
			add(i-100, 640)
			add(i-100, 5)
		}
		if i%70 == 0 {
			s = *restore(t, &s)
		}
	}
	sum := s.Summary()
	want := int64(400*640 + 100)
	kit.Check(t, sum.Usage.Output == want && sum.Answers == 500 && sum.Usage.Input == 500, "%d answers with %+v, want 500 with output %d", sum.Answers, sum.Usage, want)
}

// progressLine repeats an agent's answer, as Claude Code 2.1.12 to 2.1.76 wrote it.
func progressLine(uuid, message, model string, output int) string {
	return fmt.Sprintf(`{"type":"progress","uuid":%q,"version":"2.1.32","data":{"type":"agent_progress","agentId":"a1",`+
		`"message":{"type":"assistant","uuid":"x","timestamp":"2026-08-20T09:00:05.000Z","requestId":"r1","message":`+
		`{"id":%q,"model":%q,"content":[],"usage":{"input_tokens":3,"cache_creation_input_tokens":20,"cache_read_input_tokens":7,`+
		`"cache_creation":{"ephemeral_1h_input_tokens":20},"output_tokens":%d}}}}}`, uuid, message, model, output)
}

// TestProgressAnswers: an agent's answer in a progress record is reported, and is not the session's own.
func TestProgressAnswers(t *testing.T) {
	var s Fold
	var got []transcript.UsageSample
	for i, line := range []string{
		promptLine("1", "2.1.32", "x"),
		progressLine("2", "m1", "claude-haiku-4-5", 5),
		progressLine("3", "m2", "<synthetic>", 5),
		`{"type":"progress","uuid":"4","data":{"type":"agent_progress","message":{"type":"user","message":{"content":"x"}}}}`,
		`{"type":"progress","uuid":"5","data":{"type":"bash_progress","message":"text"}}`,
		progressLine("2", "m1", "claude-haiku-4-5", 5), // a copy
	} {
		for _, e := range s.Add(int64(i), transcript.Parse([]byte(line))) {
			if e.Kind == UsageEvent {
				got = append(got, *e.Usage)
			}
		}
	}
	want := []transcript.UsageSample{{
		MessageID: "m1", RequestID: "r1", Model: "claude-haiku-4-5", UUID: "x", Line: 1, Sidechain: true,
		Time: time.Date(2026, 8, 20, 9, 0, 5, 0, time.UTC), Usage: transcript.Usage{Input: 3, Output: 5, CacheRead: 7, CacheWrite1h: 20},
	}}
	kit.Same(t, "samples", cmp.Diff(want, got))
	if sum := s.Summary(); sum.Answers != 0 || sum.Usage != (transcript.Usage{}) || sum.Context.Known || sum.Model != "" {
		t.Errorf("the session itself: %d answers, %+v, context %+v, model %q", sum.Answers, sum.Usage, sum.Context, sum.Model)
	}
}

// TestCacheWrites distinguishes kinds of writes, and uses the flat number where it is larger.
func TestCacheWrites(t *testing.T) {
	for usage, want := range map[string]transcript.Usage{
		`{"cache_creation_input_tokens":100,"cache_creation":{"ephemeral_5m_input_tokens":30,"ephemeral_1h_input_tokens":70}}`: {CacheWrite5m: 30, CacheWrite1h: 70},
		`{"cache_creation_input_tokens":100,"cache_creation":{"ephemeral_1h_input_tokens":70}}`:                                {CacheWrite5m: 30, CacheWrite1h: 70},
		`{"cache_creation_input_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":30}}`:                                  {CacheWrite5m: 30},
		`{"cache_creation_input_tokens":100}`:                      {CacheWrite5m: 100},
		`{"input_tokens":-5,"output_tokens":99999999999999999999}`: {},
	} {
		r := transcript.Parse([]byte(`{"type":"assistant","message":{"usage":` + usage + `}}`))
		kit.Check(t, r.Message.Usage != nil && *r.Message.Usage == want, "%s is %+v, want %+v", usage, r.Message.Usage, want)
	}
}

// queueLine is a queue operation at a second.
func queueLine(operation, content string, second int) string {
	return fmt.Sprintf(`{"type":"queue-operation","operation":%q,"timestamp":"2026-08-20T09:00:%02d.000Z","content":%q}`, operation, second, content)
}

func promptLine(uuid, version, text string) string {
	return fmt.Sprintf(`{"type":"user","uuid":%q,"version":%q,"message":{"content":%q}}`, uuid, version, text)
}

// TestQueueCounts counts prompts with and without a record of their own.
func TestQueueCounts(t *testing.T) {
	attachment := `{"type":"attachment","uuid":"a1","attachment":{"type":"queued_command","commandMode":"prompt","prompt":"go on"}}`
	ended := func(uuid string) string {
		return fmt.Sprintf(`{"type":"system","subtype":"turn_duration","uuid":%q,"durationMs":5}`, uuid)
	}
	for _, tt := range []struct {
		name  string
		lines []string
		want  int64
	}{
		{"removed, old version", []string{promptLine("1", "2.1.42", "x"), queueLine("enqueue", "q", 1), queueLine("remove", "", 2)}, 2},
		{"removed, new version", []string{promptLine("1", "2.1.97", "x"), queueLine("enqueue", "q", 1), queueLine("remove", "", 2)}, 1},
		{"removed, unknown version", []string{promptLine("1", "", "x"), queueLine("enqueue", "q", 1), queueLine("remove", "", 2)}, 1},
		{"removed, major version", []string{promptLine("1", "2.0.76", "x"), queueLine("enqueue", "q", 1), queueLine("remove", "", 2)}, 2},
		{"copied operations", []string{
			promptLine("1", "2.1.42", "x"), queueLine("enqueue", "q", 1), queueLine("remove", "", 2), ended("2"),
			queueLine("enqueue", "q", 1), queueLine("remove", "", 1), ended("3"),
		}, 2},
		{"named removal", []string{
			promptLine("1", "2.1.42", "x"), queueLine("enqueue", "a", 1), queueLine("enqueue", "b", 1), queueLine("remove", "b", 2),
			queueLine("remove", "c", 2), ended("2"), promptLine("3", "2.1.42", "a"),
		}, 3},
		{"the same words in the next turn", []string{promptLine("1", "2.1.235", "x"), attachment, ended("2"), promptLine("3", "2.1.235", "go on")}, 3},
		{"the same words in this turn", []string{promptLine("1", "2.1.235", "x"), attachment, promptLine("3", "2.1.235", "go on")}, 2},
	} {
		var s Fold
		for i, line := range tt.lines {
			s.Add(int64(i), transcript.Parse([]byte(line)))
			s = *restore(t, &s)
		}
		kit.Equal(t, tt.name+": prompts", s.Summary().Prompts, tt.want)
	}
}

// TestLogForgetsHidden rewinds again and again: hidden messages are bounded too, or the log could not be decoded.
func TestLogForgetsHidden(t *testing.T) {
	var log Log
	for round := range int64(5) {
		for i := range int64(DefaultLogSize) {
			log.Add(Event{Kind: PromptEvent, Line: round*1000 + i, Text: "x"})
		}
		log.Add(Event{Kind: RewindEvent, Rewind: &Rewind{Number: round + 1, ToLine: -1, Left: []Span{{0, round*1000 + 999}}}})
	}
	state, _ := log.MarshalBinary()
	var again Log
	if err := again.UnmarshalBinary(state); err != nil || again.Len() != 0 {
		t.Errorf("read back: %v, %d messages", err, again.Len())
	}
	again.Add(Event{Kind: RewindUndoneEvent, Rewind: &Rewind{Number: 5}})
	kit.Equal(t, "messages are back", again.Len(), DefaultLogSize)
}

// TestRepeatedCalls sees one call in two answers, as a broken stream leaves it, and images next to a result.
func TestRepeatedCalls(t *testing.T) {
	var s Fold
	for i, line := range []string{
		`{"type":"assistant","uuid":"1","message":{"id":"a","content":[{"type":"tool_use","id":"t","name":"Read","input":{}}]}}`,
		`{"type":"assistant","uuid":"2","message":{"id":"b","content":[{"type":"tool_use","id":"t","name":"Read","input":{}}]}}`,
		`{"type":"user","uuid":"3","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"x"},{"type":"image"}]}}`,
	} {
		s.Add(int64(i), transcript.Parse([]byte(line)))
	}
	sum := s.Summary()
	kit.Check(t, sum.Tools == 1 && sum.Prompts == 0, "%d calls, %d prompts", sum.Tools, sum.Prompts)
}

// TestNewestAnswerGoesOn accepts better figures of the newest answer after a restart, but not of an older one.
func TestNewestAnswerGoesOn(t *testing.T) {
	var s Fold
	for i, u := range []struct {
		id            string
		context, want int64
	}{{"a", 10, 10}, {"b", 20, 20}, {"b", 2000, 2000}, {"a", 30, 2000}, {"b", 2100, 2100}} {
		s = *restore(t, &s)
		s.Add(int64(i), transcript.Parse([]byte(fmt.Sprintf(
			`{"type":"assistant","uuid":"u%d","message":{"id":%q,"model":"m","usage":{"input_tokens":%d},"content":[]}}`, i, u.id, u.context))))
		kit.Equal(t, fmt.Sprintf("line %d: tokens in use", i), s.Summary().Context.Tokens, u.want)
	}
}

// TestStateOfImplausibleTime: a time that an older build took from a record becomes zero when the state is decoded.
func TestStateOfImplausibleTime(t *testing.T) {
	var s Fold
	s.Add(1, transcript.Parse([]byte(`{"type":"user","uuid":"u","timestamp":"9999-12-31T23:59:59.000Z"}`)))
	last := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	got := s.Summary().Ended
	kit.Require(t, got.Equal(last), "ended %s", got)
	state, _ := s.MarshalBinary()
	beyond := bytes.ReplaceAll(state, binary.AppendVarint(nil, last.UnixMicro()), binary.AppendVarint(nil, last.Add(time.Hour).UnixMicro()))
	kit.Require(t, !bytes.Equal(beyond, state), "the state does not hold the time as it is expected to")
	kit.Must(t, s.UnmarshalBinary(beyond))
	sum := s.Summary()
	kit.Check(t, sum.Started.IsZero() && sum.Ended.IsZero(), "from %s to %s, want no times", sum.Started, sum.Ended)
}
