package transcript

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/google/go-cmp/cmp"
)

// TestAnswers: the model's name says what the price depends on, and further requests count by their own model.
func TestAnswers(t *testing.T) {
	const ordinary = `"input_tokens":7,"output_tokens":9,"service_tier":"standard","speed":"standard","inference_geo":"not_available"`
	tests := []struct {
		usage string
		want  []string // key, model, input, output
	}{
		{ordinary, []string{"m claude-x-1 7 9"}},
		{ordinary + `,"iterations":null`, []string{"m claude-x-1 7 9"}},
		{ordinary + `,"iterations":[]`, []string{"m claude-x-1 7 9"}},
		{ordinary + `,"iterations":[{"type":"message","input_tokens":7,"output_tokens":9}]`, []string{"m claude-x-1 7 9"}},
		{ordinary + `,"iterations":[{"input_tokens":3,"output_tokens":4},{"input_tokens":4,"output_tokens":5}]`, []string{"m claude-x-1 7 9"}},
		{`"input_tokens":"7","output_tokens":"9"`, []string{"m claude-x-1 7 9"}},
		{`"input_tokens":9007199254740993,"output_tokens":9`, []string{"m claude-x-1-miscounted 0 9"}},
		{`"input_tokens":7,"output_tokens":100000000000000000000`, []string{"m claude-x-1-miscounted 7 0"}},
		{`"input_tokens":-7,"output_tokens":9,"speed":"fast"`, []string{"m claude-x-1-fast-miscounted 0 9"}},
		{`"input_tokens":"many","output_tokens":9`, []string{"m claude-x-1-miscounted 0 9"}},
		{`"input_tokens":1e3,"output_tokens":9`, []string{"m claude-x-1-miscounted 0 9"}},
		{`"input_tokens":1099511627777,"output_tokens":9`, []string{"m claude-x-1-miscounted 1099511627776 9"}},
		{ordinary + `,"iterations":[{"type":"advisor_message","model":"claude-y-2","input_tokens":-1,"output_tokens":60}]`,
			[]string{"m claude-x-1 7 9", "m#1 claude-y-2-miscounted 0 60"}},
		{`"input_tokens":7.0,"output_tokens":"9","cache_read_input_tokens":null,"cache_creation":null`, []string{"m claude-x-1 7 9"}},
		{`"input_tokens":7,"output_tokens":9,"speed":"fast"`, []string{"m claude-x-1-fast 7 9"}},
		{`"input_tokens":7,"output_tokens":9,"speed":"fast","inference_geo":"us"`, []string{"m us/claude-x-1-fast 7 9"}},
		{`"input_tokens":7,"output_tokens":9,"service_tier":"priority","inference_geo":"global"`, []string{"m claude-x-1-priority 7 9"}},
		{`"input_tokens":7,"output_tokens":9,"inference_geo":"US-East-1"`, []string{"m us-east-1/claude-x-1 7 9"}},
		{`"input_tokens":7,"output_tokens":9,"inference_geo":"atlantis"`, []string{"m claude-x-1-atlantis 7 9"}},
		{`"input_tokens":7,"output_tokens":9,"iterations":[{"type":"message","input_tokens":7,"speed":"fast","inference_geo":"us"}],"speed":"standard"`,
			[]string{"m us/claude-x-1-fast 7 9"}},
		{ordinary + `,"iterations":[{"type":"message","input_tokens":7,"output_tokens":9},
			{"type":"advisor_message","model":"claude-y-2","input_tokens":50,"output_tokens":60,"speed":"fast"},
			{"type":"compaction","input_tokens":70,"output_tokens":80}, 5, {"type":"later_message","input_tokens":1}]`,
			[]string{"m claude-x-1 7 9", "m#1 claude-y-2-fast 50 60", "m#2 claude-x-1 70 80", "m#3 claude-x-1 1 0"}},
		{ordinary + `,"iterations":[{"type":"advisor_message","model":"claude-y-2","input_tokens":0,"output_tokens":0}]`,
			[]string{"m claude-x-1 7 9"}},
	}
	for _, test := range tests {
		line := `{"type":"assistant","requestId":"r","message":{"id":"m","model":"claude-x-1","usage":{` + test.usage + `}}}`
		var got []string
		r := Parse([]byte(line))
		for a := range r.Answers() {
			got = append(got, fmt.Sprint(a.Key(), " ", a.Model, " ", a.Usage.Input, " ", a.Usage.Output))
		}
		diff := cmp.Diff(test.want, got)
		kit.Check(t, diff == "", "%s (-want +got):\n%s", test.usage, diff)
	}
	for _, line := range []string{
		`{"type":"user","message":{"usage":{"input_tokens":1}}}`,
		`{"type":"assistant","message":{"model":"<synthetic>","usage":{"input_tokens":1}}}`,
		`{"type":"assistant","isApiErrorMessage":true,"message":{"usage":{"input_tokens":1}}}`,
		`{"type":"assistant","message":{"id":"m"}}`,
	} {
		r := Parse([]byte(line))
		got := slices.Collect(r.Answers())
		kit.Check(t, got == nil, "%s has answers %+v", line, got)
	}
}

// TestAnswersAlike: of lines that say the same the earliest counts, in any order, so an answer has one day.
func TestAnswersAlike(t *testing.T) {
	first := UsageSample{MessageID: "m", Line: 4, Time: parseTime([]byte(`"2026-11-20T23:59:59.900Z"`)), Usage: Usage{Output: 5}}
	second := first
	second.Line, second.Time = 5, parseTime([]byte(`"2026-11-21T00:00:00.100Z"`))
	kit.Check(t, first.Supersedes(second) && !second.Supersedes(first), "the later line counts")
}
