package session_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript"
	. "github.com/ccship/ccship/transcript/session"
)

// TestQueue: what the records of the queue do not say is found by content, and what was typed goes before what was not.
// A row is what happens while the model works: "+" came, "-" left (with its text, or without), "<" was taken to be
// sent next, "^" went back to the input box, ">" is a record of its own, "@" one in the middle of the turn.
func TestQueue(t *testing.T) {
	const notice = "<task-notification><task-id>b7</task-id><status>completed</status><summary>Tests ended</summary></task-notification>"
	const another = "<task-notification><task-id>b8</task-id><status>completed</status><summary>Build ended</summary></task-notification>"
	const task = `{"task_id":"b7","description":"run tests","task_type":"local_bash"}`
	for _, x := range []struct{ name, happens, want string }{
		{"a prompt behind a notice that leaves no record", "+" + notice + "|+are we missing some?|-", "prompt are we missing some?"},
		{"two notices and a prompt that leave together", "+" + notice + "|+" + another + "|+and that?|-|-|-",
			"prompt and that?|message Tests ended|message Build ended"},
		{"a notice that has a record, and a prompt", "+" + notice + "|>" + notice + "|+and that?|-", "message Tests ended|prompt and that?"},
		{"only notices", "+" + notice + "|-|+" + another + "|-", "message Tests ended|message Build ended"},
		{"a command that left no record, and a prompt", "+/exit|+try again now|-", "prompt try again now"},
		{"a command", "+/model|-", "command /model"},
		{"a path is no command", "+/home/kim/cart.go is broken|-", "prompt /home/kim/cart.go is broken"},
		{"a task as JSON", "+" + task + "|-", "message run tests"},
		{"a task as JSON before a prompt", "+" + task + "|+go on|-", "prompt go on"},
		{"named when it leaves", "+one|+two|-two", "prompt two"},
		{"the second is sent next, the first left", "+one|+two|<|>two|-", "prompt two|prompt one"},
		{"sent next without a record", "+/exit|<|+go on|-", "prompt go on"},
		{"back in the input box, the notice stays", "+" + notice + "|+one|^|-", "message Tests ended"},
		{"a picture without a text is sent next, then a prompt leaves", "+|<|>|+still there?|-", "prompt |prompt still there?"},
		{"a picture, and a prompt that is typed again by another", "+|<|>|+still there?|>and now?|-", "prompt |prompt and now?|prompt still there?"},
		{"notices leave, and the prompt behind them is sent next", "+" + notice + "|+" + another + "|+fix it|-|<|end|>fix it", "prompt fix it"},
		{"all leave but the prompt that is sent next", "+" + notice + "|+fix it|-|<|end|>fix it", "prompt fix it"},
		{"what left is typed again later", "+" + notice + "|+fix it|-|end|>fix it", "prompt fix it|prompt fix it"},
		{"equal texts are two prompts of two turns", "+yes|<|>yes|end|>yes", "prompt yes|prompt yes"},
		{"equal texts that leave together", "+yes|+yes|-|-", "prompt yes|prompt yes"},
		{"equal texts, one after the other", "+yes|-|+yes|-yes", "prompt yes|prompt yes"},
		{"equal texts that have records", "+yes|+yes|-|-|@yes|@yes", "prompt yes|prompt yes"},
		{"equal notices", "+" + notice + "|-|+" + notice + "|-", "message Tests ended|message Tests ended"},
		{"equal texts, one is back in the input box", "+yes|-|+yes|^|@yes", "prompt yes"},
	} {
		t.Run(x.name, func(t *testing.T) {
			var s Fold
			n := 0
			var got []string
			add := func(record string) {
				n++
				stamp := time.Date(2026, 2, 9, 6, 0, n, 0, time.UTC).Format(time.RFC3339Nano)
				line := fmt.Sprintf(`{"sessionId":"S","version":"2.1.37","timestamp":%q,%s}`, stamp, record)
				for _, e := range s.Add(int64(n), transcript.Parse([]byte(line))) {
					switch e.Kind {
					case PromptEvent:
						got = append(got, "prompt "+e.Text)
					case MessageEvent:
						got = append(got, "message "+e.Text)
					case CommandEvent:
						got = append(got, "command "+e.Text)
					}
				}
				s = *restore(t, &s)
			}
			user := func(text string) {
				content := fmt.Sprintf("%q", text)
				if text == "" {
					content = `[{"type":"image"}]`
				}
				add(fmt.Sprintf(`"type":"user","uuid":"u%d","parentUuid":"u%d","message":{"content":%s}`, n+1, n, content))
			}
			user("begin")
			answer := func(stop string) {
				add(fmt.Sprintf(`"type":"assistant","uuid":"u%d","parentUuid":"u%d","message":{"id":"m%d","model":"m","stop_reason":%q,`+
					`"content":[{"type":"text","text":"so"}]}`, n+1, n, n, stop))
			}
			answer("tool_use")
			for _, step := range strings.Split(x.happens, "|") {
				operation := map[byte]string{'+': "enqueue", '-': "remove", '<': "dequeue", '^': "popAll"}[step[0]]
				switch {
				case operation != "":
					add(fmt.Sprintf(`"type":"queue-operation","operation":%q,"content":%q`, operation, step[1:]))
				case step[0] == '>':
					user(step[1:])
				case step[0] == '@':
					add(fmt.Sprintf(`"type":"attachment","uuid":"u%d","parentUuid":"u%d","attachment":{"type":"queued_command",`+
						`"commandMode":"prompt","prompt":%q}`, n+1, n, step[1:]))
				default:
					answer("end_turn")
				}
			}
			kit.Same(t, "differs", cmp.Diff("prompt begin|"+x.want, strings.Join(got, "|")))
		})
	}
}

// TestTurnsOfOthers: a schedule, a background task, a session that writes to this one and Claude Code itself begin
// turns of their own when the model does something; the first duration that a turn has stays.
func TestTurnsOfOthers(t *testing.T) {
	var s Fold
	var log Log
	n, at := 0, time.Date(2026, 11, 18, 11, 0, 0, 0, time.UTC)
	add := func(after time.Duration, record string) {
		n++
		at = at.Add(after)
		line := fmt.Sprintf(`{"sessionId":"S","version":"2.1.290","uuid":"u%d","parentUuid":"u%d","timestamp":%q,%s}`, n, n-1,
			at.Format(time.RFC3339Nano), record)
		for _, e := range s.Add(int64(n), transcript.Parse([]byte(line))) {
			log.Add(e)
		}
		s = *restore(t, &s)
	}
	answer := func(seconds int) {
		add(time.Duration(seconds)*time.Second, fmt.Sprintf(`"type":"assistant","message":{"id":"m%d","model":"m","stop_reason":"end_turn",`+
			`"usage":{"input_tokens":1,"output_tokens":1},"content":[{"type":"text","text":"answer"}]}`, n))
	}
	ended := func(seconds int) {
		add(0, fmt.Sprintf(`"type":"system","subtype":"turn_duration","durationMs":%d`, 1000*seconds))
	}
	add(0, `"type":"user","origin":{"kind":"human"},"message":{"content":"check every hour"}`)
	answer(4)
	ended(4)
	add(0, `"type":"system","subtype":"turn_duration","durationMs":99000`)
	for range 2 {
		add(time.Hour, `"type":"system","subtype":"scheduled_task_fire","content":"Running"`)
		add(0, `"type":"user","isMeta":true,"promptSource":"system","scheduledTaskId":"f","turnOrigin":"scheduled","message":{"content":"look"}`)
		answer(5)
		ended(5)
	}
	add(time.Minute, `"type":"user","origin":{"kind":"task-notification"},"message":{"content":"<task-notification><summary>One</summary></task-notification>"}`)
	add(time.Minute, `"type":"user","origin":{"kind":"task-notification"},"message":{"content":"<task-notification><summary>Two</summary></task-notification>"}`)
	answer(3)
	ended(3)
	add(time.Minute, `"type":"user","isMeta":true,"origin":{"kind":"auto-continuation"},"message":{"content":"Your limit has reset"}`)
	add(2*time.Second, `"type":"assistant","message":{"id":"mx","model":"m","stop_reason":"tool_use","content":[{"type":"text","text":"so"}]}`)
	add(time.Second, `"type":"attachment","attachment":{"type":"queued_command","commandMode":"prompt","isMeta":true,`+
		`"prompt":"<agent-message from=\"a1\">half</agent-message>"}`)
	answer(2)
	ended(6)
	answer(60)
	var got []string
	for _, m := range log.Messages(0, 0) {
		switch m.Kind {
		case UserMessage, OthersMessage:
			got = append(got, strings.TrimSpace(m.From+" "+m.Content))
		case ResultMessage:
			got = append(got, fmt.Sprint("turn of ", m.Duration))
		}
	}
	want := []string{
		"check every hour", "turn of 4s", "scheduled task look", "turn of 5s", "scheduled task look", "turn of 5s",
		"background task One", "background task Two", "turn of 3s", "auto continuation Your limit has reset", "agent a1 half", "turn of 6s",
		"Claude Code goes on", "turn of 0s",
	}
	kit.Same(t, "differs", cmp.Diff(want, got))
	sum := s.Summary()
	kit.Check(t, sum.Prompts == 1 && sum.Turns == 6 && sum.Title == "check every hour", "%d prompts, %d turns, title %q", sum.Prompts, sum.Turns, sum.Title)
}

// TestTurnsHaveResults: a turn is counted and has a result when the model did something in it, the API failed or the
// person interrupted it. A prompt that the next one replaces before that is no turn.
func TestTurnsHaveResults(t *testing.T) {
	const (
		schedule  = `{"type":"user","isMeta":true,"promptSource":"system","turnOrigin":"scheduled","message":{"content":"look"}}`
		interrupt = `{"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}`
		calls     = `{"type":"assistant","message":{"id":"t","model":"m","content":[{"type":"tool_use","id":"1","name":"Bash","input":{}}]}}`
		refused   = `{"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user for tool use]"}]}}`
		apiError  = `{"type":"assistant","isApiErrorMessage":true,"message":{"model":"<synthetic>","content":[{"type":"text","text":"API Error: 529"}]}}`
		filler    = `{"type":"assistant","message":{"model":"<synthetic>","content":[{"type":"text","text":"No response requested."}]}}`
		duration  = `{"type":"system","subtype":"turn_duration","durationMs":1000}`
		asked     = `{"type":"user","message":{"content":"do it"}}`
		task      = `{"type":"user","isSidechain":true,"agentId":"a","uuid":"1","message":{"content":"look"}}`
		worked    = `{"type":"assistant","isSidechain":true,"agentId":"a","uuid":"2","parentUuid":"1","message":{"id":"b","model":"m",` +
			`"stop_reason":"end_turn","content":[{"type":"text","text":"seen"}]}}`
	)
	for _, tt := range []struct {
		name  string
		lines []string
		want  int64
	}{
		{"answered", []string{asked, answerText("", "x")}, 1},
		{"interrupted before an answer", []string{asked, interrupt}, 1},
		{"interrupted twice", []string{asked, interrupt, interrupt}, 1},
		{"interrupted in a tool", []string{asked, calls, refused, duration}, 1},
		{"interrupted, and goes on", []string{asked, calls, refused, answerText("", "x")}, 1},
		{"an interruption without a turn", []string{interrupt}, 0},
		{"replaced by the next prompt", []string{asked, asked, answerText("", "x")}, 1},
		{"nothing came of it", []string{asked, filler}, 0},
		{"the API failed", []string{asked, apiError}, 1},
		{"a schedule's, interrupted", []string{schedule, interrupt}, 1},
		{"a schedule's, replaced", []string{schedule, schedule, answerText("", "x")}, 1},
		{"still running", []string{asked, calls}, 1},
		{"an agent's task", []string{task, worked}, 1},
		{"without a prompt", []string{answerText("", "x")}, 1},
	} {
		var s Fold
		results := map[int64]bool{}
		for i, line := range append(tt.lines, `{"type":"user","message":{"content":"the next"}}`) {
			for _, e := range s.Add(int64(i), transcript.Parse([]byte(line))) {
				if e.Kind == TurnEvent && !e.Turn.Unanswered {
					results[e.Turn.Number] = true
				}
			}
			s = *restore(t, &s)
		}
		turns := s.Summary().Turns
		kit.Check(t, turns == tt.want && int64(len(results)) == turns, "%s: %d turns and %d results, want %d", tt.name, turns,
			len(results), tt.want)
	}
}

// TestTeammateIsNamed: a session that nobody prompted has the name of the teammate that it is, not what it was asked.
func TestTeammateIsNamed(t *testing.T) {
	var s Fold
	s.Add(0, transcript.Parse([]byte(`{"type":"user","uuid":"1","teamName":"cart","agentName":"tester","message":{"content":`+
		`"<teammate-message teammate_id=\"team-lead\">write tests</teammate-message>"}}`)))
	sum := s.Summary()
	kit.Check(t, sum.Title == "tester" && sum.Prompts == 0 && sum.FirstPrompt == "", "title %q, %d prompts, first %q", sum.Title, sum.Prompts, sum.FirstPrompt)
}
