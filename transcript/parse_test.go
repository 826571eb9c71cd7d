package transcript_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ccship/ccship/e2e/kit"
	. "github.com/ccship/ccship/transcript"
)

// parseCase is a line and the record that Parse makes of it.
type parseCase struct {
	name, line string
	want       Record
}

func parseCases() []parseCase {
	at := time.Date(2026, 8, 20, 9, 0, 0, 101e6, time.UTC)
	return []parseCase{
		{"envelope", `{"parentUuid":"p","logicalParentUuid":"l","isSidechain":true,"promptId":"i","agentId":"a","type":"user","uuid":"u","timestamp":"2026-08-20T09:00:00.101Z","permissionMode":"plan","origin":{"kind":"human"},"promptSource":"typed","sourceToolAssistantUUID":"s","userType":"external","entrypoint":"cli","cwd":"C:\\src\\x","sessionId":"S","version":"2.1.235","gitBranch":"main","teamName":"t","requestId":"r","isMeta":true,"isCompactSummary":true,"isVisibleInTranscriptOnly":true,"planContent":"#"}`,
			Record{Type: "user", UUID: "u", ParentUUID: "p", LogicalParentUUID: "l", SessionID: "S", AgentID: "a", RequestID: "r", Time: at, Cwd: `C:\src\x`, Branch: "main", Version: "2.1.235", Entrypoint: "cli", Origin: "human", PromptSource: "typed", PermissionMode: "plan", TeamName: "t", Meta: true, Sidechain: true, CompactSummary: true, VisibleOnly: true, FromPlan: true, SourceID: "s"}},
		{"time in another zone", `{"timestamp":"2026-08-20T11:00:00.101+02:00"}`, Record{Time: at}},
		{"time in milliseconds", `{"timestamp":1787216400101}`, Record{Time: at}},
		{"time in seconds", `{"timestamp":1787216400}`, Record{Time: at.Truncate(time.Second)}},
		{"time in microseconds", `{"timestamp":1787216400101000}`, Record{Time: at}},
		{"time before 1970", `{"timestamp":"1969-12-31T23:59:59.999Z"}`, Record{}},
		{"first time", `{"timestamp":"1970-01-01T00:00:00.001Z"}`, Record{Time: time.UnixMilli(1).UTC()}},
		{"last time", `{"timestamp":"9999-12-31T23:59:59.999Z"}`, Record{Time: time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC)}},
		{"time in year 10000, by its zone", `{"timestamp":"9999-12-31T09:00:01.000-23:59"}`, Record{}},
		{"time in year -1, by its zone", `{"timestamp":"0000-01-01T00:00:00.000+23:59"}`, Record{}},
		{"time in year 1", `{"timestamp":"0001-01-01T09:00:00.101Z"}`, Record{}},
		{"a number that is no time", `{"timestamp":90000000000000000}`, Record{}},
		{"last day of a month", `{"timestamp":"2026-02-28T23:59:59.999Z"}`, Record{Time: time.Date(2026, 2, 28, 23, 59, 59, 999e6, time.UTC)}},
		{"no such day", `{"timestamp":"2026-02-30T00:00:00.000Z"}`, Record{}},
		{"no such hour", `{"timestamp":"2026-02-10T24:00:00.000Z"}`, Record{}},
		{"spaced", " {\t\"type\" : \"mode\" , \"uuid\" :\"u\" } ", Record{Type: "mode", UUID: "u"}},
		{"wrong kinds", `{"type":["user"],"uuid":7,"timestamp":true,"message":"text","isMeta":"true","cwd":null,"origin":["human"],"error":1}`, Record{}},
		{"short, with escapes", `{"cwd":"a\"b\\","uuid":"\\\"","version":"\\\\"}`, Record{Cwd: `a"b\`, UUID: `\"`, Version: `\\`}},
		{"long, with escapes", `{"cwd":"` + strings.Repeat("x", 60) + `\"y\\","uuid":"u"}`, Record{Cwd: strings.Repeat("x", 60) + `"y\`, UUID: "u"}},
		{"no object", `["type"]`, Record{}},
		{"nothing", ``, Record{}},
		{"last of two", `{"type":"mode","type":"tag"}`, Record{Type: "tag", Labels: &Labels{}}},
		{"escaped name", `{"\u0074ype":"mode"}`, Record{Type: "mode"}},
		{"message of another type", `{"type":"api-request-blob","message":{"role":"user","content":"x"}}`, Record{Type: "api-request-blob"}},
		{"lineage", `{"type":"user","sessionId":"S","forkedFrom":{"sessionId":"F","messageUuid":"m"}}`, Record{Type: "user", SessionID: "S", Lineage: &Lineage{ForkedFrom: "F"}}},
		{"own request", `{"type":"mode","sessionId":"S","requestSessionId":"S"}`, Record{Type: "mode", SessionID: "S"}},
		{"boundary, numbers as strings", `{"type":"system","subtype":"compact_boundary","compactMetadata":{"preTokens":"167412","postTokens":"9120","durationMs":"41200"}}`, Record{Type: "system", Subtype: "compact_boundary", Compact: &Compact{Pre: 167412, Post: 9120, Took: 41200 * time.Millisecond}}},
		{"duration as a string", `{"type":"system","subtype":"turn_duration","durationMs":"8100"}`, Record{Type: "system", Subtype: "turn_duration", Duration: 8100 * time.Millisecond}},
		{"boundary", `{"type":"system","subtype":"compact_boundary","content":"c","compactMetadata":{"trigger":"auto","preTokens":167412,"postTokens":-1}}`, Record{Type: "system", Subtype: "compact_boundary", Text: "c", Compact: &Compact{Trigger: "auto", Pre: 167412}}},
		{"turn duration", `{"type":"system","subtype":"turn_duration","durationMs":8100.7}`, Record{Type: "system", Subtype: "turn_duration", Duration: 8100 * time.Millisecond}},
		{"endless turn", `{"type":"system","subtype":"turn_duration","durationMs":1e300}`, Record{Type: "system", Subtype: "turn_duration"}},
		{"retry", `{"type":"system","subtype":"api_error","error":{"status":529,"error":{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}}}`, Record{Type: "system", Subtype: "api_error", Error: "Overloaded"}},
		{"connection", `{"type":"system","subtype":"api_error","error":{"cause":{"code":"ECONNRESET"}}}`, Record{Type: "system", Subtype: "api_error", Error: "ECONNRESET"}},
		{"away", `{"type":"system","subtype":"away_summary","summary":"Tests were fixed."}`, Record{Type: "system", Subtype: "away_summary", Text: "Tests were fixed."}},
		{"queue", `{"type":"queue-operation","operation":"enqueue","content":"x"}`, Record{Type: "queue-operation", Subtype: "enqueue", Text: "x"}},
		{"pull request", `{"type":"pr-link","prNumber":42,"prUrl":"u"}`, Record{Type: "pr-link", Labels: &Labels{PRURL: "u", PRNumber: 42}}},
	}
}

func TestParse(t *testing.T) {
	for _, tt := range parseCases() {
		diff := cmp.Diff(tt.want, Parse([]byte(tt.line)), cmpopts.IgnoreUnexported(Message{}))
		kit.Check(t, diff == "", "%s (-want +got):\n%s", tt.name, diff)
		if l := Scan([]byte(tt.line)); l.Shape == Object {
			diff := cmp.Diff(Parse([]byte(tt.line)), ParseScanned([]byte(tt.line), l), cmpopts.IgnoreUnexported(Message{}))
			kit.Check(t, diff == "", "%s (-parsed +scanned):\n%s", tt.name, diff)
		}
	}
}

func TestBlocks(t *testing.T) {
	long := strings.Repeat("x", 1000)
	line := []byte(`{"type":"assistant","toolUseResult":{"a":"` + long + `"},"message":{"id":"m","role":"assistant","model":"<synthetic>","stop_reason":"end_turn","content":[` +
		`{"type":"thinking","thinking":"hm","signature":"s"},{"type":"redacted_thinking","data":"x"},{"type":"text","text":"a\nb` + long + `"},` +
		`{"type":"server_tool_use","id":"t1","name":"web_search","input":{"query":"q"}},` +
		`{"type":"web_search_tool_result","tool_use_id":"t1","content":[{"type":"web_search_result","url":"u"}]},` +
		`{"type":"tool_result","tool_use_id":"t2","is_error":true,"content":[{"type":"text","text":"o"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}}]},` +
		`{"type":"tool_result","tool_use_id":"t3","content":"plain"},{"type":"document","source":{"type":"url","url":"https://example.invalid/a.pdf"}},"bare",{"type":"new_kind"},7]},"uuid":"u"}`)
	for _, r := range []Record{Parse(line), ParseScanned(line, Scan(line))} {
		if r.UUID != "u" || len(r.ToolResult) != 1008 || !r.Message.Synthetic() || r.Message.StopReason != "end_turn" {
			t.Fatalf("parsed %+v", r)
		}
		got := r.Message.Blocks()
		want := []Block{
			{Kind: ThinkingBlock, Type: "thinking", Text: "hm"},
			{Kind: RedactedThinkingBlock, Type: "redacted_thinking"},
			{Kind: TextBlock, Type: "text", Text: "a\nb" + long},
			{Kind: ToolUseBlock, Type: "server_tool_use", ToolID: "t1", ToolName: "web_search", Input: json.RawMessage(`{"query":"q"}`)},
			{Kind: ToolResultBlock, Type: "web_search_tool_result", ToolID: "t1", Content: []Block{{Kind: TextBlock, Type: "web_search_result", Text: "u"}}},
			{Kind: ToolResultBlock, Type: "tool_result", ToolID: "t2", Error: true, Content: []Block{
				{Kind: TextBlock, Type: "text", Text: "o"}, {Kind: ImageBlock, Type: "image", MediaType: "image/png", Data: []byte("iVBO")},
			}},
			{Kind: ToolResultBlock, Type: "tool_result", ToolID: "t3", Content: []Block{{Kind: TextBlock, Type: "text", Text: "plain"}}},
			{Kind: DocumentBlock, Type: "document"},
			{Kind: TextBlock, Type: "text", Text: "bare"},
			{Type: "new_kind"},
		}
		diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Block{}, "Raw"))
		kit.Require(t, diff == "", "blocks (-want +got):\n%s", diff)
		if got[5].Output() != "o" || got[6].Output() != "plain" || r.Message.Text() != "a\nb"+long+"\nbare" {
			t.Errorf("texts are %q, %q, %.20q", got[5].Output(), got[6].Output(), r.Message.Text())
		}
	}
}

// TestPreview shows one line of each kind as lists show it.
func TestPreview(t *testing.T) {
	for line, want := range map[string]string{
		`{"type":"user","message":{"content":"  two\n lines\u0007 "}}`:                                               "two lines",
		`{"type":"user","message":{"content":[{"type":"image"}]}}`:                                                   "[image]",
		`{"type":"user","message":{"content":"<command-name>/status</command-name><command-args>x</command-args>"}}`: "/status x",
		`{"type":"user","message":{"content":[{"type":"tool_result","content":"out"}]}}`:                             "out",
		`{"type":"user","isMeta":true,"message":{"content":"made"}}`:                                                 "made",
		`{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Read","input":{"file_path":"/a"}}]}}`:  "Read /a",
		`{"type":"assistant","message":{"content":[{"type":"thinking","thinking":""}]}}`:                             "[thinking]",
		`{"type":"assistant","message":{"content":null}}`:                                                            "",
		`{"type":"system","subtype":"compact_boundary"}`:                                                             "Conversation compacted",
		`{"type":"ai-title","aiTitle":"A title"}`:                                                                    "A title",
		`{"type":"attachment","attachment":{"type":"skill_listing"}}`:                                                "attachment skill_listing",
		`{"type":"x-new"}`: "x-new",
	} {
		r := Parse([]byte(line))
		kit.Equal(t, line, r.Preview(), want)
	}
	r := Parse([]byte(`{"type":"user","message":{"content":"` + strings.Repeat("가 ", 300) + `"}}`))
	long := r.Preview()
	n := len([]rune(long))
	kit.Check(t, n <= 200 && strings.HasSuffix(long, "…"), "a long preview has %d characters: %q", n, long)
}

func TestNativeWindow(t *testing.T) {
	for model, want := range map[string]int64{
		"claude-fable-5": 1e6, "claude-haiku-5-5": 1e6, "claude-mythos-1": 1e6, "claude-sonnet-5": 1e6, "claude-sonnet-5-20260301": 1e6, "claude-opus-5": 1e6,
		"claude-opus-4-7": 1e6, "claude-opus-4-8-20260501": 1e6, "claude-opus-4-8@20260501": 2e5, "anthropic.claude-opus-5-v1:0": 2e5,
		"claude-opus-4-6": 2e5, "claude-opus-4-6[1m]": 1e6, "claude-opus-4-20250514": 2e5, "claude-opus-4-1-20250805": 2e5,
		"claude-sonnet-4-6": 2e5, "claude-sonnet-4-5-20250929": 2e5, "claude-3-5-sonnet-20241022": 2e5, "claude-3-opus-20240229": 2e5,
		"claude-haiku-4-5-20251001": 2e5, "": 0, "<synthetic>": 0, "gpt-oss:20b": 0,
	} {
		kit.Equal(t, model, NativeWindow(model), want)
	}
}

// TestUsageSupersedes counts an answer once, whatever the order of its copies.
func TestUsageSupersedes(t *testing.T) {
	main := UsageSample{MessageID: "m", RequestID: "r", Usage: Usage{Output: 5}, Line: 1}
	final := UsageSample{MessageID: "m", RequestID: "r", Usage: Usage{Output: 640}, Line: 2}
	aside := UsageSample{MessageID: "m", RequestID: "other", Usage: Usage{Output: 900}, Line: 9, Sidechain: true}
	for _, order := range [][]UsageSample{{main, final, aside}, {aside, final, main}, {final, aside, main}} {
		var kept UsageSample
		for i, u := range order {
			if u.Key() != "m" {
				t.Fatalf("the key is %q", u.Key())
			}
			if i == 0 || u.Supersedes(kept) {
				kept = u
			}
		}
		kit.Check(t, kept == final, "%+v is kept", kept)
	}
	kit.Check(t, !final.Supersedes(final), "a sample supersedes itself")
	kit.Check(t, (UsageSample{RequestID: "r"}).Key() == "r" && (UsageSample{UUID: "u"}).Key() == "u",
		"without a message id the request or the line tells answers apart")
}

// FuzzParse parses anything; for valid records it must agree with encoding/json.
func FuzzParse(f *testing.F) {
	for _, tt := range parseCases() {
		f.Add([]byte(tt.line))
	}
	f.Add([]byte(`{"type":"user","message":{"content":[{"type":"tool_result","content":[{"type":"tool_result","content":[{}]}]}]`))
	f.Add([]byte("{\"type\":\"assistant\",\"message\":{\"usage\":{\"input_tokens\":99999999999999999999,\"output_tokens\":-1e9}}}\n{\"\\u"))
	f.Fuzz(func(t *testing.T, line []byte) {
		before := bytes.Clone(line)
		r := Parse(line)
		r.Speech()
		r.Command()
		r.Interrupted()
		n := len([]rune(r.Preview()))
		kit.Check(t, n <= 200, "a preview of %d characters", n)
		if r.Message != nil {
			for _, b := range r.Message.Blocks() {
				b.Output()
				ToolSummary(b.ToolName, b.Input, 10)
				ToolPath(b.ToolName, b.Input)
				in := ToolInput(b.ToolName, b.Input, 10)
				kit.Check(t, Scan(line).Shape != Object || json.Valid(in), "input is not valid: %s", in)
			}
		}
		kit.Equal(t, "the line was changed", before, line)
		l := Scan(line)
		if l.Shape != Object {
			return
		}
		kit.Same(t, "differs", cmp.Diff(r, ParseScanned(line, l), cmpopts.IgnoreUnexported(Message{})))
		var o map[string]json.RawMessage
		kit.Must(t, json.Unmarshal(line, &o))
		var want string
		kit.Check(t, json.Unmarshal(o["uuid"], &want) != nil || want == r.UUID, "uuid is %q, want %q", r.UUID, want)
	})
}
