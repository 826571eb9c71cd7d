//go:build unix

package claude_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// ask posts a request to the stub and returns the status and the body.
func ask(t *testing.T, s *stub, path, body string) (int, string) {
	t.Helper()
	r, err := http.Post(s.srv.URL+path, "application/json", strings.NewReader(body))
	must(t, err)
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	must(t, err)
	return r.StatusCode, string(data)
}

// talk asks and puts the answer together again, from server-sent events or from one document.
func talk(t *testing.T, s *stub, body string) completion {
	t.Helper()
	code, answer := ask(t, s, "/v1/messages?beta=true", body)
	if code != http.StatusOK {
		t.Fatalf("status %d: %s", code, answer)
	}
	if !strings.HasPrefix(answer, "event:") {
		var m completion
		must(t, json.Unmarshal([]byte(answer), &m))
		return m
	}
	return assembled(t, answer)
}

// event is the union of all server-sent events.
type event struct {
	Type    string
	Message completion
	Index   int
	Block   block `json:"content_block"`
	Delta   struct {
		Text, Thinking, Signature string
		Partial                   string  `json:"partial_json"`
		Stop                      *string `json:"stop_reason"`
	}
	Usage usage
}

// assembled does what a client of the API does with its events.
func assembled(t *testing.T, stream string) completion {
	t.Helper()
	var m completion
	var input strings.Builder
	lines := bufio.NewScanner(strings.NewReader(stream))
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e event
		must(t, json.Unmarshal([]byte(data), &e))
		switch e.Type {
		case "message_start":
			m = e.Message
		case "content_block_start":
			if e.Index != len(m.Content) {
				t.Fatalf("block %d starts after %d blocks", e.Index, len(m.Content))
			}
			m.Content = append(m.Content, e.Block)
			input.Reset()
		case "content_block_delta":
			b := &m.Content[e.Index]
			b.Text, b.Thinking, b.Signature = b.Text+e.Delta.Text, b.Thinking+e.Delta.Thinking, b.Signature+e.Delta.Signature
			if input.WriteString(e.Delta.Partial); b.Type == "tool_use" {
				b.Input = json.RawMessage(input.String())
			}
		case "message_delta":
			m.StopReason, m.Usage = e.Delta.Stop, e.Usage
		case "message_stop":
			return m
		}
	}
	t.Fatalf("no message_stop in %q", stream)
	return m
}

const tools = `"tools":[{"name":"Bash"},{"name":"Agent"}]`

func TestStubAnswers(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"echo", `"messages":[{"role":"user","content":"hé!"}],` + tools, `text "You said: hé!" end_turn`},
		{"a reminder is no prompt", `"messages":[{"role":"user","content":[{"type":"text","text":"<system-reminder>x"},{"type":"text","text":"hello"}]}],` + tools, `text "You said: hello" end_turn`},
		{"system messages among them", `"messages":[{"role":"user","content":"hello"},{"role":"system","content":"x"}],` + tools, `text "You said: hello" end_turn`},
		{"a tool by its line", `"messages":[{"role":"user","content":"please\n@Bash {\"command\":\"date\"}"}],` + tools, `tool_use Bash {"command":"date"} tool_use`},
		{"a subagent by its new name", `"messages":[{"role":"user","content":"@Task {}"}],` + tools, `tool_use Agent {} tool_use`},
		{"results of unknown calls", `"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"y"}]}],` + tools, `text "Done." end_turn`},
		{"compaction", `"messages":[{"role":"user","content":"Your task is to create a detailed summary of the conversation"}],` + tools, `text "` + strings.ReplaceAll(marks[0].says, "\n", `\n`) + `" end_turn`},
		{"notification", `"messages":[{"role":"user","content":"<task-notification>"}],` + tools, `text "Noted." end_turn`},
		{"quota", `"max_tokens":1,"messages":[{"role":"user","content":"quota"}]`, `text "ok" end_turn`},
		{"title", `"messages":[{"role":"user","content":"hello"}]`, `text "A session" end_turn`},
		{"structured", `"output_config":{"format":{"schema":{"type":"object","required":["a","b"],"properties":{"a":{"type":"boolean"},"b":{"enum":["x"]}}}}},"messages":[{"role":"user","content":"?"}]`, `text "{\"a\":false,\"b\":\"x\"}" end_turn`},
		{"forced tool", `"tool_choice":{"name":"Bash"},"messages":[{"role":"user","content":"?"}],"tools":[{"name":"Bash","input_schema":{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}}]`, `tool_use Bash {"n":0} tool_use`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStub(t, script{when: "a word nobody says", says: []answer{{text: "wrong"}}})
			for _, stream := range []string{"true", "false"} {
				if got := describe(talk(t, s, `{"model":"m","stream":`+stream+`,`+c.body+`}`)); got != c.want {
					t.Errorf("stream %s: %s, want %s", stream, got, c.want)
				}
			}
		})
	}
}

// describe is an answer in a line.
func describe(m completion) string {
	var parts []string
	for _, b := range m.Content {
		switch b.Type {
		case "tool_use":
			parts = append(parts, "tool_use "+b.Name+" "+string(b.Input))
		case "thinking":
			parts = append(parts, "thinking "+b.Thinking)
		default:
			text, _ := json.Marshal(b.Text)
			parts = append(parts, "text "+strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(text)))
		}
	}
	return strings.Join(append(parts, *m.StopReason), " ")
}

// TestStubScript plays a script whose first answer fails once, beside another conversation that goes on in between.
func TestStubScript(t *testing.T) {
	s := newStub(t, script{when: "build", says: []answer{
		{status: 529, thinking: "Well.", text: "Two things.", tools: []call{{name: "Bash", input: json.RawMessage(`{"n":1}`)}, {name: "Bash", input: json.RawMessage(`{"n":2}`)}}},
		{text: "Built."},
	}})
	begin := `{"stream":true,"messages":[{"role":"user","content":"build it"}],` + tools + `}`
	if code, answer := ask(t, s, "/v1/messages", begin); code != 529 || !strings.Contains(answer, "overloaded_error") {
		t.Fatalf("first try: %d %s, want 529", code, answer)
	}
	first := talk(t, s, begin)
	if got, want := describe(first), `thinking Well. text "Two things." tool_use Bash {"n":1} tool_use Bash {"n":2} tool_use`; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	talk(t, s, `{"messages":[{"role":"user","content":"something else"}],`+tools+`}`)
	for _, want := range []string{`text "Built." end_turn`, `text "Built." end_turn`} { // a fork asks the same again
		results := `{"messages":[{"role":"assistant","content":[]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + first.Content[2].ID + `"}]}],` + tools + `}`
		if got := describe(talk(t, s, results)); got != want {
			t.Errorf("after the tools: %s, want %s", got, want)
		}
	}
}

func TestStubCountsAndWonders(t *testing.T) {
	s := newStub(t)
	if code, answer := ask(t, s, "/v1/messages/count_tokens", `{"messages":[]}`); code != 200 || !strings.Contains(answer, `"input_tokens":3`) {
		t.Errorf("count_tokens: %d %s", code, answer)
	}
	if code, _ := ask(t, s, "/v1/models", `{}`); code != http.StatusNotFound {
		t.Errorf("an unknown path is answered with %d", code)
	}
	if code, _ := ask(t, s, "/v1/messages", `{`); code != http.StatusBadRequest {
		t.Errorf("a broken body is answered with %d", code)
	}
	counts, strange := s.seen()
	if counts[counting] != 1 || len(strange) != 2 {
		t.Errorf("counts %v, strange %q", counts, strange)
	}
}
