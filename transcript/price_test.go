package transcript

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
)

func TestPriceOf(t *testing.T) {
	tests := []struct {
		model string
		input float64 // 0: unknown
	}{
		{"claude-opus-5-5", 4},
		{"claude-opus-5-5[1m]", 4},
		{"claude-opus-5", 5},
		{"claude-opus-5-20260724", 5},
		{"claude-opus-5@20260724", 5},
		{"us.anthropic.claude-opus-4-5-20251101-v1:0", 5.5}, // kept in one region
		{"global.anthropic.claude-opus-4-5-20251101-v1:0", 5},
		{"eu.anthropic.claude-sonnet-4-5-20250929-v1:0", 3.3},
		{"us.anthropic.claude-sonnet-4-20250514-v1:0", 3}, // older than regional prices
		{"arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-opus-4-8-v1:0", 5.5},
		{"ca.anthropic.claude-opus-4-8-v1:0", 5.5}, // whatever the region
		{"bedrock/global.anthropic.claude-opus-4-8", 5},
		{"bedrock/us-gov-west-1/anthropic.claude-opus-4-8-v1:0", 5.5},
		{"arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123", 0},
		{"us/claude-opus-4-8", 5.5},
		{"fast/us/claude-opus-4-8", 11},
		{"fast/claude-opus-4-8", 10},
		{"fast/claude-sonnet-5", 0},
		{"anthropic/claude-opus-4.8:free", 0},
		{"vertex_ai/claude-opus-4-8@default", 5},
		{"anthropic/claude-opus-4.8", 5},
		{"openrouter/anthropic/claude-sonnet-4.5:beta", 3},
		{"openrouter/anthropic/claude-3.5-haiku", 0.8},
		{"claude-haiku-3-5", 0.8},
		{"claude-4.5-sonnet", 3},
		{"claude-4-opus", 15},
		{"claude-sonnet-4-5-thinking", 3},
		{"databricks/databricks-claude-opus-4-8", 5},
		{"vertex_ai/claude-haiku-4-5@20251001", 1},
		{"claude-opus-4-8-fast", 10},
		{"us/claude-opus-4-8-fast", 11},
		{"claude-opus-4-6-fast", 30},
		{"claude-sonnet-5-fast", 0}, // no price of fast mode is known
		{"claude-opus-4-8-priority", 0},
		{"glm-4.6", 0},
		{"claude-opus-4-20250514", 15},
		{"claude-opus-4-1-20250805", 15},
		{"CLAUDE-Sonnet-5", 2},
		{"claude-3-5-sonnet-latest", 3},
		{"claude-haiku-4-5-20251001", 1},
		{"claude-fable-5-1", 10},
		{"claude-opus-6", 0}, // not the price of an older one
		{"claude-opus-5-6", 0},
		{"gpt-7", 0},
		{"<synthetic>", 0},
		{"", 0},
		{"[1m]", 0},
	}
	for _, test := range tests {
		p, ok := DefaultPrices().Of(test.model)
		kit.Check(t, ok == (test.input > 0) && (!ok || math.Abs(p.Input-test.input) <= 1e-9), "%q: %v %v, want %v",
			test.model, p.Input, ok, test.input)
	}
}

func TestCost(t *testing.T) {
	p := DefaultPrices()
	tokens := Usage{Input: 1_000_000, Output: 2_000_000, CacheRead: 3_000_000, CacheWrite5m: 4_000_000, CacheWrite1h: 5_000_000}
	known, unknown := p.Cost("claude-opus-5", tokens, false), p.Cost("new", tokens, false)
	kit.Check(t, math.Abs(known.USD-(5+50+1.5+25+50)) <= 1e-9 && known.Unpriced == 0 && known.Priced == 15_000_000,
		"cost is %+v", known)
	sum := known.Plus(unknown)
	kit.Check(t, math.Abs(sum.USD-131.5) <= 1e-9 && sum.Unpriced == 15_000_000 && sum.Known(), "sum is %+v", sum)
	kit.Check(t, !unknown.Known() && unknown.USD == 0, "the cost of an unknown model is known: %+v", unknown)
	kit.Check(t, (Cost{}).Known(), "nothing costs something unknown")
}

// TestWebSearches: they cost extra; a list without their price leaves a mark.
func TestWebSearches(t *testing.T) {
	tokens := Usage{Input: 1_000_000, WebSearches: 50}
	c := DefaultPrices().Cost("claude-opus-4-8", tokens, false)
	kit.Check(t, math.Abs(c.USD-5.5) <= 1e-9 && c.Unpriced == 0, "cost is %+v", c)
	p := kit.Try(ReadPrices(strings.NewReader(`{"schema_version":1,"currency":"USD","per_tokens":1000000,"models":[{"match":"*","input":1}]}`))).Must(t)
	c = p.Cost("x", tokens, false)
	kit.Check(t, c.USD == 1 && c.Unpriced == 50, "without a price of searches the cost is %+v", c)
}

// TestLongContext: a request above the limit costs more for all of its tokens, if its model has such a price.
func TestLongContext(t *testing.T) {
	tokens := Usage{Input: 1_000_000, Output: 1_000_000, CacheRead: 1_000_000, CacheWrite5m: 1_000_000, CacheWrite1h: 1_000_000}
	for model, want := range map[string][2]float64{
		"claude-sonnet-4-5-20250929": {3 + 15 + 0.3 + 3.75 + 6, 6 + 22.5 + 0.6 + 7.5 + 12},
		"claude-sonnet-4-20250514":   {3 + 15 + 0.3 + 3.75 + 6, 6 + 22.5 + 0.6 + 7.5 + 12},
		"claude-sonnet-4-6":          {3 + 15 + 0.3 + 3.75 + 6, 3 + 15 + 0.3 + 3.75 + 6},
		"claude-opus-5-5[1m]":        {4 + 20 + 0.2 + 5 + 8, 4 + 20 + 0.2 + 5 + 8},
	} {
		for i, long := range []bool{false, true} {
			c := DefaultPrices().Cost(model, tokens, long)
			kit.Check(t, math.Abs(c.USD-want[i]) <= 1e-9, "%s, long %v: $%v, want $%v", model, long, c.USD, want[i])
		}
	}
}

// TestPricePatterns: * stands for anything, also nothing, anywhere.
func TestPricePatterns(t *testing.T) {
	const head = `{"schema_version":1,"currency":"USD","per_tokens":1000000,"models":[`
	for pattern, names := range map[string][2]string{
		"abc":     {"abc", "abcd xabc"},
		"a*c":     {"ac abc abcbc", "acd bac"},
		"*":       {"x", ""},
		"*b*b*":   {"bb abcbd", "abc"},
		"a*a":     {"aa aba", "a"},
		"ab*ba":   {"abba", "aba"},
		"A*":      {"abc", "bc"},
		"*a*ab*b": {"aabb", "aab"},
	} {
		p := kit.Try(ReadPrices(strings.NewReader(head + `{"match":"` + pattern + `","input":1}]}`))).Must(t)
		for i, list := range names {
			for name := range strings.FieldsSeq(list) {
				_, ok := p.Of(name)
				kit.Check(t, ok == (i == 0), "pattern %q, name %q: %v", pattern, name, ok)
			}
		}
	}
}

func TestReadPricesRefuses(t *testing.T) {
	const good = `{"schema_version":1,"currency":"USD","per_tokens":1000000,"models":[{"match":"x","input":1}]}`
	kit.Try(ReadPrices(strings.NewReader(good))).Must(t)
	for _, change := range [][2]string{
		{`"schema_version":1`, `"schema_version":2`},
		{`USD`, `EUR`},
		{`1000000`, `1000`},
		{`{"match":"x","input":1}`, ``},
		{`"x"`, `""`},
		{`"input":1`, `"input":-1`},
		{`"input":1`, `"inptu":1`},
		{`"input":1`, `"input":"1"`},
		{`"input":1`, `"input":1,"fast":-2`},
		{`"input":1`, `"input":1,"long_context":{"output":-1}`},
		{`]}`, ``},
		{`"x"`, `"` + strings.Repeat("x", 1<<20) + `"`},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		_, err := ReadPrices(strings.NewReader(bad))
		kit.Check(t, err != nil, "taken: %.120s", bad)
	}
}

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
