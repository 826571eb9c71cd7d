package derive_test

import (
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
)

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
