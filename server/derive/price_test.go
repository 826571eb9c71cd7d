package derive_test

import (
	"math"
	"strings"
	"testing"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
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
		{"us.anthropic.claude-opus-4-5-20251101-v1:0", 5},
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
		p, ok := derive.DefaultPrices().Of(test.model)
		if ok != (test.input > 0) || p.Input != test.input {
			t.Errorf("%q: %v %v, want %v", test.model, p.Input, ok, test.input)
		}
	}
}

func TestCost(t *testing.T) {
	p := derive.DefaultPrices()
	tokens := server.Tokens{Input: 1_000_000, Output: 2_000_000, CacheRead: 3_000_000, CacheWrite5m: 4_000_000, CacheWrite1h: 5_000_000}
	if c := p.Cost("claude-opus-5", tokens); math.Abs(c.USD-(5+50+1.5+25+50)) > 1e-9 || c.Unpriced != 0 || c.Priced != 15_000_000 {
		t.Errorf("cost is %+v", c)
	}
	sum := p.Sum([]server.UsageRow{{Model: "claude-opus-5", Tokens: tokens}, {Model: "new", Tokens: tokens}})
	if math.Abs(sum.USD-131.5) > 1e-9 || sum.Unpriced != 15_000_000 || !sum.Known() {
		t.Errorf("sum is %+v", sum)
	}
	if c := p.Cost("new", tokens); c.Known() || c.USD != 0 {
		t.Errorf("the cost of an unknown model is known: %+v", c)
	}
	if c := p.Sum(nil); !c.Known() {
		t.Error("nothing costs something unknown")
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
		p, err := derive.ReadPrices(strings.NewReader(head + `{"match":"` + pattern + `","input":1}]}`))
		if err != nil {
			t.Fatal(err)
		}
		for i, list := range names {
			for name := range strings.FieldsSeq(list) {
				if _, ok := p.Of(name); ok != (i == 0) {
					t.Errorf("pattern %q, name %q: %v", pattern, name, ok)
				}
			}
		}
	}
}

func TestReadPricesRefuses(t *testing.T) {
	const good = `{"schema_version":1,"currency":"USD","per_tokens":1000000,"models":[{"match":"x","input":1}]}`
	if _, err := derive.ReadPrices(strings.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"schema_version":1`, `"schema_version":2`},
		{`USD`, `EUR`},
		{`1000000`, `1000`},
		{`{"match":"x","input":1}`, ``},
		{`"x"`, `""`},
		{`"input":1`, `"input":-1`},
		{`"input":1`, `"inptu":1`},
		{`"input":1`, `"input":"1"`},
		{`]}`, ``},
		{`"x"`, `"` + strings.Repeat("x", 1<<20) + `"`},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if _, err := derive.ReadPrices(strings.NewReader(bad)); err == nil {
			t.Errorf("taken: %.120s", bad)
		}
	}
}
