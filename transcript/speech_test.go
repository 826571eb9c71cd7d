package transcript_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
	. "github.com/ccship/ccship/transcript"
)

// TestSpeech says of records who speaks in them, and what. Each row is a line without what all lines have.
func TestSpeech(t *testing.T) {
	const peer = "Another Claude session sent a message:\\n<cross-session-message from=\\\"uds:/run/7\\\" name=\\\"checkout\\\">\\nstop\\n" +
		"</cross-session-message>\\n\\nThis came from another Claude session."
	for _, x := range []struct{ line, want string }{
		{`"message":{"content":"fix it"}`, "You: fix it"},
		{`"message":{"content":"fix it"},"origin":{"kind":"human"},"promptSource":"typed","turnOrigin":"human"`, "You: fix it"},
		{`"message":{"content":"fix it"},"promptSource":"sdk","turnOrigin":"sdk"`, "You: fix it"},
		{`"message":{"content":"<task-notification> is a tag"},"promptSource":"typed"`, "You: <task-notification> is a tag"},
		{`"message":{"content":"<teammate-message teammate_id=\"x\">pasted</teammate-message>"},"origin":{"kind":"human"}`,
			`You: <teammate-message teammate_id="x">pasted</teammate-message>`},
		{`"message":{"content":"what is <teammate-message> for?"}`, "You: what is <teammate-message> for?"},
		{`"message":{"content":"<channel>5</channel> does not parse"}`, "You: <channel>5</channel> does not parse"},
		{`"message":{"content":"{\"type\":\"idle_notification\",\"from\":\"tester\"}"}`, "Claude Code: idle notification"},
		{`"message":{"content":"{\"type\":\"shutdown_request\",\"message\":\"done here\"}"}`, "Claude Code: done here"},
		{`"message":{"content":"{\"hookSpecificOutput\":{\"a\":1},\"systemMessage\":\"formatted\"}"}`, "Claude Code: formatted"},
		{`"message":{"content":"{\"type\":\"idle_notification\"}"},"promptSource":"typed"`, `You: {"type":"idle_notification"}`},
		{`"message":{"content":"{\"type\":\"object\",\"a\":1} is no schema"}`, `You: {"type":"object","a":1} is no schema`},
		{`"message":{"content":"{\"type\":\"object\"}"}`, `You: {"type":"object"}`},
		{`"message":{"content":"{\"task_id\": broken"}`, `You: {"task_id": broken`},
		{`"message":{"content":"<ide_opened_file>The user opened a.go</ide_opened_file>\n<system-reminder>\nnow\n</system-reminder>\nfix it"}`, "You: fix it"},
		{`"message":{"content":"<system-reminder>\nnow"}`, ""},
		{`"message":{"content":"skill text"},"isMeta":true`, ""},
		{`"message":{"content":"skill text"},"isMeta":true,"origin":{"kind":"human"},"turnOrigin":"human"`, ""},
		{`"message":{"content":"<system-reminder>\n<tools-used-before-summary>Bash</tools-used-before-summary>\n</system-reminder>"},` +
			`"isMeta":true,"turnCompanion":true,"turnOrigin":"task_notification"`, ""},

		{`"message":{"content":"<channel source=\"plugin:telegram:telegram\" chat_id=\"77\" user=\"kim\">\ndeploy\n</channel>"},` +
			`"isMeta":true,"origin":{"kind":"channel","server":"plugin:telegram:telegram"}`, "You via telegram: deploy"},
		{`"message":{"content":"deploy"},"isMeta":true,"origin":{"kind":"channel","server":"slack"}`, "You via slack: deploy"},
		{`"message":{"content":"<channel source=\"imessage\">deploy</channel>"},"isMeta":true`, "You via imessage: deploy"},
		{`"message":{"content":"<channel\n  source='imessage'\n  user='kim'>\ndeploy\n</channel>"},"isMeta":true`, "You via imessage: deploy"},
		{`"message":{"content":"<channel name=\"telegram\">deploy</channel>"},"isMeta":true,"origin":{"kind":"channel"}`, "You via telegram: deploy"},
		{`"message":{"content":"deploy"},"isMeta":true,"origin":{"kind":"channel","source":"plugin:telegram:telegram"}`, "You via telegram: deploy"},

		{`"message":{"content":"<teammate-message teammate_id=\"tester\" color=\"blue\">\nall green\n</teammate-message>"}`,
			"Message of teammate tester: all green"},
		{`"message":{"content":"<teammate-message teammate_id=\"a\">one</teammate-message>\n\n<teammate-message teammate_id=\"a\">two</teammate-message>"}`,
			"Message of teammate a: one\ntwo"},
		{`"message":{"content":"<teammate-message teammate_id=\"tester\">\n{\"type\":\"idle_notification\",\"idleReason\":\"available\"}\n</teammate-message>"}`,
			"Message of teammate tester: idle notification: available"},
		{`"message":{"content":"stop"},"isMeta":true,"origin":"peer"`, "Message of another session: stop"},
		{`"message":{"content":"stop"},"isMeta":true,"origin":{"kind":"teammate","name":"tester"}`, "Message of teammate tester: stop"},
		{`"message":{"content":[{"type":"text","text":"<system-reminder>now</system-reminder>"},{"type":"text","text":"<teammate-message\n teammate_id='a'>one` +
			`</teammate-message>"},{"type":"text","text":"<task-notification>\n<summary>Tests ended</summary>\n</task-notification>"}]}`,
			"Message of teammate a: one\nTests ended"},
		{`"message":{"content":"` + peer + `"},"isMeta":true,"origin":{"kind":"peer","from":"uds:/run/7","name":"checkout"}`,
			"Message of session checkout: stop"},
		{`"message":{"content":"` + peer + `"}`, "Message of session checkout: stop"},
		{`"message":{"content":"stop"},"isMeta":true,"origin":{"kind":"peer","from":"uds:/run/user/1000/cc-socks/413"}`,
			"Message of another session: stop"},
		{`"message":{"content":"stop"},"turnOrigin":"peer"`, "Message of another session: stop"},
		{`"message":{"content":"go on with the tests"},"isSidechain":true,"agentId":"a1","isMeta":true,"origin":{"kind":"coordinator"}`,
			"Message of another coordinator: go on with the tests"},
		{`"message":{"content":"<agent-message from=\"a2f0\">\n[Subagent hand-back] The text below is the final report. The report follows:\n` +
			`  <tools-used-before-summary>Bash</tools-used-before-summary>\n  Both are done.\n    - one\n</agent-message>"},"isMeta":true`,
			"Message of agent a2f0: Both are done.\n  - one"},

		{`"message":{"content":"look at the deploy"},"isMeta":true,"promptSource":"system","scheduledTaskId":"f5","turnOrigin":"scheduled"`,
			"Scheduled task: look at the deploy"},
		{`"message":{"content":"go on"},"isMeta":true,"origin":{"kind":"human"},"wakeupSource":"loop"`, "Scheduled task: go on"},
		{`"message":{"content":"look at the deploy"},"isMeta":true,"turnOrigin":"scheduled"`, "Scheduled task: look at the deploy"},
		{`"message":{"content":"Your usage limit has reset"},"isMeta":true,"origin":{"kind":"auto-continuation"}`,
			"Auto continuation: Your usage limit has reset"},
		{`"message":{"content":"<task-notification>\n<task-id>b7</task-id>\n<status>completed</status>\n<summary>Tests ended</summary>\n` +
			`<result>12 pass</result>\n</task-notification>"},"origin":{"kind":"task-notification"},"promptSource":"sdk"`,
			"Background task: Tests ended\n\n12 pass"},
		{`"message":{"content":"[SYSTEM NOTIFICATION - NOT USER INPUT]\nThis is an automated event.\n<task-notification>\n<summary>Tests ended</summary>\n` +
			`</task-notification>"}`, "Background task: Tests ended"},
		{`"message":{"content":"[SYSTEM NOTIFICATION - NOT USER INPUT]\nA task ended."}`, "Background task: A task ended."},
		{`"message":{"content":"[SYSTEM NOTIFICATION\n<task-notification><summary>Tests [unit] ended</summary></task-notification>"}`,
			"Background task: Tests [unit] ended"},
		{`"message":{"content":"[SYSTEM NOTIFICATION] An event:\n<github-webhook-activity>\npushed\n</github-webhook-activity>"}`,
			"Webhook: pushed"},
		{`"message":{"content":"{\"task_id\":\"b7\",\"description\":\"run tests\",\"task_type\":\"local_bash\"}"}`, "Background task: run tests"},
		{`"message":{"content":"{\"task_id\":\"b7\",\"task_type\":\"local_agent\"}"}`, "Background task: b7"},
		{`"message":{"content":"<mcp-resource-update server=\"builds\" uri=\"x\">\nred\n</mcp-resource-update>"}`, "MCP server builds: red"},
		{`"message":{"content":"<tick>10:00</tick>"}`, "Scheduled task: 10:00"},
		{`"promptSource":"sdk","origin":{"kind":"human"},"message":{"content":"<scheduled-task name=\"daily\" file=\"/x/SKILL.md\">\nLook.\n</scheduled-task>"}`,
			"Scheduled task daily: Look."},
		{`"message":{"content":[{"type":"text","text":"<scheduled-task name=\"daily\" file=\"C:\\x\">\nLook."}]}`, "Scheduled task daily: Look."},
		{`"promptSource":"typed","origin":{"kind":"human"},"message":{"content":"<scheduled-task name=\"daily\"> is what?"}`,
			`You: <scheduled-task name="daily"> is what?`},
		{`"message":{"content":"hi"},"origin":{"kind":"something-new"}`, "Something new: hi"},
		{`"message":{"content":"hi"},"promptSource":"system"`, "Claude Code: hi"},
	} {
		r := Parse(fmt.Appendf(nil, `{"type":"user","uuid":"1",%s}`, x.line))
		s := r.Speech()
		got := ""
		if s.Speaker != NoSpeaker {
			got = s.Label() + ": " + s.Text
		}
		kit.Equal(t, x.line, got, x.want)
	}
}

// TestQueuedSpeech is the same of what waited in the queue.
func TestQueuedSpeech(t *testing.T) {
	for _, x := range []struct{ attachment, want string }{
		{`"commandMode":"prompt","prompt":"and the docs"`, "You: and the docs"},
		{`"commandMode":"prompt","prompt":"and the docs","origin":{"kind":"human"}`, "You: and the docs"},
		{`"commandMode":"prompt","prompt":[{"type":"text","text":"and the docs"}]`, "You: and the docs"},
		{`"commandMode":"prompt","isMeta":true,"prompt":"A peer session sent a message while you were working:\n` +
			`<cross-session-message from-name=\"checkout\">stop</cross-session-message>"`, "Message of session checkout: stop"},
		{`"commandMode":"prompt","isMeta":true,"prompt":"context"`, ""},
		{`"commandMode":"prompt","prompt":"Goal set: done","origin":{"kind":"auto-continuation"}`, "Auto continuation: Goal set: done"},
		{`"commandMode":"prompt","isMeta":true,"prompt":"<channel source=\"telegram\">and the docs</channel>"`, "You via telegram: and the docs"},
		{`"commandMode":"task-notification","prompt":"<task-notification><summary>Tests ended</summary></task-notification>"`,
			"Background task: Tests ended"},
		{`"commandMode":"bash","prompt":"ls"`, ""},
	} {
		r := Parse(fmt.Appendf(nil, `{"type":"attachment","uuid":"1","attachment":{"type":"queued_command",%s}}`, x.attachment))
		got := ""
		if s := r.Speech(); s.Speaker != NoSpeaker {
			got = s.Label() + ": " + s.Text
		}
		kit.Equal(t, x.attachment, got, x.want)
	}
}

// TestReplies: what the person says in the results of tools.
func TestReplies(t *testing.T) {
	const rejected = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the " +
		"new_string was NOT written to the file). "
	for _, x := range []struct{ result, more, want string }{
		{`"content":"User has answered your questions: \"Which?\"=\"neither\""`,
			`{"questions":[{"question":"Which?"}],"answers":{"Which?":"neither"},"annotations":{"Which?":{"notes":"ask me again"}}}`, "neither\nask me again"},
		{`"content":"ok"`, `{"questions":[{"question":"Which?"}],"answers":{"Which?":["a","b"]}}`, "a\nb"},
		{`"content":"ok"`, `{"stdout":"ok"}`, ""},
		{`"is_error":true,"content":"` + rejected + `To tell you how to proceed, the user said:\nkeep 19 percent"`, `"User rejected tool use"`, "keep 19 percent"},
		{`"is_error":true,"content":[{"type":"text","text":"` + rejected + `The user provided the following reason for the rejection:  keep it` +
			`\n\nNote: The user's next message may contain more"}]`, `"x"`, "keep it"},
		{`"is_error":true,"content":"Permission for this tool use was denied. The tool use was rejected. The user said:\nnot now"`, `"x"`, "not now"},
		{`"is_error":true,"content":"` + rejected + `"`, `"x"`, ""},
		{`"is_error":true,"content":"grep: the user said:\nhello"`, `"x"`, ""},
		{`"content":"the user said:\nhello"`, `"x"`, ""},
	} {
		r := Parse(fmt.Appendf(nil, `{"type":"user","uuid":"1","message":{"content":[{"type":"tool_result","tool_use_id":"t",%s}]},"toolUseResult":%s}`,
			x.result, x.more))
		got := ""
		for _, reply := range r.Replies() {
			got += reply.Text
		}
		diff := cmp.Diff(x.want, got)
		kit.Check(t, diff == "", "%s (-want +got):\n%s", x.result, diff)
	}
}

// TestServerResults: results of tools that ran on the server, and reports of agents, are read whatever their form.
func TestServerResults(t *testing.T) {
	for _, x := range []struct {
		block, want string
		failed      bool
	}{
		{`"type":"advisor_tool_result","content":{"type":"advisor_result","text":"take the second"}`, "take the second", false},
		{`"type":"advisor_tool_result","content":{"type":"advisor_redacted_result","encrypted_content":"EqQB"}`, "", false},
		{`"type":"advisor_tool_result","content":{"type":"advisor_tool_result_error","error_code":"unavailable"}`, "error: unavailable", true},
		{`"type":"web_search_tool_result","content":[{"type":"web_search_result","title":"VAT","url":"https://a.invalid","encrypted_content":"Eq"},` +
			`{"type":"web_search_result","title":"Tax","url":"https://b.invalid","page_age":"2 days"}]`, "VAT\nhttps://a.invalid\nTax\nhttps://b.invalid", false},
		{`"type":"web_fetch_tool_result","content":{"type":"web_fetch_result","url":"https://a.invalid","retrieved_at":"now","content":` +
			`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"19 percent"},"title":"VAT"}}`,
			"https://a.invalid\n19 percent\nVAT", false},
		{`"type":"web_fetch_tool_result","content":{"type":"web_fetch_result","url":"https://a.invalid","content":` +
			`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0"}}}`, "https://a.invalid", false},
		{`"type":"code_execution_tool_result","content":{"type":"code_execution_result","stdout":"42\n","stderr":"","return_code":0,"content":[]}`, "42", false},
		{`"type":"bash_code_execution_tool_result","content":{"type":"bash_code_execution_result","stdout":"","stderr":"no such file","return_code":1}`,
			"no such file", false},
		{`"type":"text_editor_code_execution_tool_result","content":{"type":"text_editor_code_execution_str_replace_result","lines":["-a","+b"]}`, "-a\n+b", false},
		{`"type":"tool_search_tool_result","content":{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"Grep"}]}`,
			"Grep", false},
		{`"type":"mcp_tool_result","content":[{"type":"text","text":"sent"}]`, "sent", false},
		{`"type":"tool_result","content":"<tools-used-before-summary>Bash, Read</tools-used-before-summary>\n\nThe report"`, "The report", false},
		{`"type":"tool_result","content":[{"type":"text","text":"<tools-used-before-summary>Bash</tools-used-before-summary>\nThe report"}]`, "The report", false},
		{`"type":"tool_result","content":"see <tools-used-before-summary>x</tools-used-before-summary>"`,
			"see <tools-used-before-summary>x</tools-used-before-summary>", false},
	} {
		r := Parse(fmt.Appendf(nil, `{"type":"assistant","message":{"content":[{"tool_use_id":"t",%s}]}}`, x.block))
		raw := r.Message.RawBlocks()[0]
		got := raw.Output(500)
		kit.Check(t, got == x.want && raw.Failed == x.failed, "%s\ngot  %q, failed %v\nwant %q", x.block, got, raw.Failed, x.want)
		b := r.Message.Blocks()[0]
		kit.Check(t, b.Output() == x.want && b.Error == x.failed, "%s\ngot  %q, error %v\nwant %q", x.block, b.Output(), b.Error, x.want)
	}
}

func TestPromptHeading(t *testing.T) {
	for text, want := range map[string]string{
		"fix the cart":                    "fix the cart",
		"/init":                           "",
		"/ccship:why":                     "",
		"/review 214 and the tests":       "/review 214 and the tests",
		"/usr/lib/cart.so crashes":        "/usr/lib/cart.so crashes",
		"[Image #1]":                      "",
		"[image]":                         "",
		"[Image #1] why is this **red**?": "why is this red?",
		"[Pasted text #1 +20 lines] what is wrong":           "what is wrong",
		"# Count in cents\n\nThe cart rounds `float64`.":     "Count in cents",
		"Please:\n- [ ] fix `cart.go`\n- see [it](http://x)": "Please: fix cart.go see it",
		"> quoted\n\n```go\nfunc main() {}\n```":             "quoted func main() {}",
		"<task><goal>Fix it</goal></task>":                   "Fix it",
		"what does Vec<String> mean, and <div>?":             "what does Vec<String> mean, and <div>?",
		"keep snake_case and __init__":                       "keep snake_case and __init__",
		"2 * 3 is not 5":                                     "2 * 3 is not 5",
	} {
		kit.Equal(t, text, PromptHeading(text, 300), want)
	}
	got := PromptHeading("a long **prompt** indeed", 10)
	kit.Check(t, len([]rune(got)) <= 10, "%q", got)
}

func TestPlanHeading(t *testing.T) {
	for plan, want := range map[string]string{
		"## Context\nIt rounds.":                         "",
		"Implement the following plan:\n\n# Cents `now`": "Cents now",
		"# Plan: count in cents\n\n1. a":                 "count in cents",
		"# Plan":                                         "",
		"no heading\n#hashtag":                           "",
	} {
		kit.Equal(t, plan, PlanHeading(plan, 300), want)
	}
}

func TestToolSummary(t *testing.T) {
	for _, tt := range []struct{ name, input, want, object string }{
		{"Read", `{"file_path":"/a b.go","offset":3}`, "/a b.go", `{"file_path":"/a b.go"}`},
		{"Edit", `{"replace_all":false,"file_path":"/a","old_string":"{\"file_path\":\"no\"}"}`, "/a", `{"file_path":"/a"}`},
		{"NotebookEdit", `{"notebook_path":"/n.ipynb","new_source":"x"}`, "/n.ipynb", `{"notebook_path":"/n.ipynb"}`},
		{"Bash", `{"command":"\n go test ./... \necho","description":"Test"}`, "Test: go test ./...", `{"description":"Test","command":"go test ./..."}`},
		{"Grep", `{"pattern":"a\\.b","path":"src","-n":true}`, `a\.b in src`, `{"pattern":"a\\.b","path":"src"}`},
		{"Glob", `{"pattern":"**/*.go"}`, "**/*.go", `{"pattern":"**/*.go"}`},
		{"TodoWrite", `{"todos":[{"content":"x"}],"b":null}`, `[{"content":"x"}], null`, `{"todos":[{"content":"x"}],"b":null}`},
		{"Read", `{}`, "", `{}`},
		{"Read", `null`, "", `{}`},
		{"Read", ``, "", `{}`},
		{"Read", `{"file_path":7}`, "7", `{"file_path":7}`},
	} {
		kit.Equal(t, fmt.Sprintf("%s %s: summary", tt.name, tt.input), ToolSummary(tt.name, []byte(tt.input), 0), tt.want)
		kit.Equal(t, fmt.Sprintf("%s %s: input", tt.name, tt.input), string(ToolInput(tt.name, []byte(tt.input), 0)),
			tt.object)
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 5, ""}, {"abcde", 5, "abcde"}, {"abcdef", 5, "abcde... (6 chars total)"}, {"가나다라마", 5, "가나다라마"},
		{"가나다라마바", 5, "가나다라마... (6 chars total)"}, {"abc", 0, "abc"}, {"abc", -1, "abc"},
	} {
		kit.Equal(t, fmt.Sprintf("Cut(%q, %d)", tt.text, tt.limit), Cut(tt.text, tt.limit), tt.want)
	}
}
