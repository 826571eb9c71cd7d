package transcript_test

import (
	"fmt"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript"
)

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
		r := transcript.Parse(fmt.Appendf(nil, `{"type":"assistant","message":{"content":[{"tool_use_id":"t",%s}]}}`, x.block))
		raw := r.Message.RawBlocks()[0]
		got := raw.Output(500)
		kit.Check(t, got == x.want && raw.Failed == x.failed, "%s\ngot  %q, failed %v\nwant %q", x.block, got, raw.Failed, x.want)
		b := r.Message.Blocks()[0]
		kit.Check(t, b.Output() == x.want && b.Error == x.failed, "%s\ngot  %q, error %v\nwant %q", x.block, b.Output(), b.Error, x.want)
	}
}
