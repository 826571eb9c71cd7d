package session_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/transcript"
	. "github.com/ccship/ccship/transcript/session"
)

func TestBudget(t *testing.T) {
	const k = 1000
	learned := LearnedLimits{}
	learned.Learn("claude-opus-4-5", transcript.Compact{Trigger: "auto", Pre: 160 * k})
	learned.Learn("claude-opus-4-5", transcript.Compact{Trigger: "auto", Pre: 155 * k})
	learned.Learn("claude-opus-4-5", transcript.Compact{Trigger: "auto", Pre: 158 * k})
	learned.Learn("claude-opus-4-5", transcript.Compact{Trigger: "manual", Pre: 20 * k})
	learned.Learn("claude-opus-4-5", transcript.Compact{Trigger: "auto", Pre: 20 * k, Micro: true})
	learned.Learn("", transcript.Compact{Trigger: "auto", Pre: 20 * k})
	if diff := cmp.Diff(LearnedLimits{"claude-opus-4-5": 155 * k}, learned); diff != "" {
		t.Errorf("learned (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		name           string
		model          string
		most, boundary int64
		options        BudgetOptions
		want           Budget
	}{
		{"nothing known", "", 0, 0, BudgetOptions{}, Budget{200 * k, 167 * k, DefaultBudget, DerivedBudget}},
		{"native", "claude-sonnet-5", 0, 0, BudgetOptions{}, Budget{1000 * k, 967 * k, ModelBudget, DerivedBudget}},
		{"native, elsewhere", "us.anthropic.claude-opus-4-8-v1:0", 0, 0, BudgetOptions{}, Budget{200 * k, 167 * k, ModelBudget, DerivedBudget}},
		{"asked for", "claude-sonnet-4-6", 134 * k, 0, BudgetOptions{Stated: 1000 * k}, Budget{1000 * k, 967 * k, StatedBudget, DerivedBudget}},
		{"more than native", "claude-opus-4-6", 230 * k, 0, BudgetOptions{}, Budget{1000 * k, 967 * k, SeenBudget, DerivedBudget}},
		{"boundary", "gateway-model", 174 * k, 167_412, BudgetOptions{}, Budget{200 * k, 167_412, BoundaryBudget, BoundaryBudget}},
		{"boundary of a large window", "gateway-model", 967 * k, 967 * k, BudgetOptions{}, Budget{1000 * k, 967 * k, SeenBudget, BoundaryBudget}},
		{"boundary long passed", "claude-sonnet-5", 400 * k, 167 * k, BudgetOptions{}, Budget{1000 * k, 967 * k, ModelBudget, DerivedBudget}},
		{"learned", "claude-opus-4-5", 150 * k, 0, BudgetOptions{Learned: learned}, Budget{200 * k, 155 * k, ModelBudget, LearnedBudget}},
		{"learned, and passed", "claude-opus-4-5", 190 * k, 0, BudgetOptions{Learned: learned}, Budget{200 * k, 167 * k, ModelBudget, DerivedBudget}},
		{"one overshoot", "claude-opus-4-5", 176_700, 176_700, BudgetOptions{}, Budget{200 * k, 167 * k, ModelBudget, DerivedBudget}},
		{"one overshoot, and lower ones elsewhere", "claude-opus-4-5", 176_700, 176_700, BudgetOptions{Learned: learned}, Budget{200 * k, 155 * k, ModelBudget, LearnedBudget}},
		{"lower than elsewhere", "claude-opus-4-5", 120 * k, 120 * k, BudgetOptions{Learned: learned}, Budget{200 * k, 120 * k, ModelBudget, BoundaryBudget}},
		{"much higher than elsewhere", "claude-opus-4-8", 900 * k, 900 * k, BudgetOptions{Learned: LearnedLimits{"claude-opus-4-8": 155 * k}}, Budget{1000 * k, 900 * k, ModelBudget, BoundaryBudget}},
		{"passed since the overshoot", "claude-opus-4-5", 199 * k, 176_700, BudgetOptions{Learned: learned}, Budget{200 * k, 167 * k, ModelBudget, DerivedBudget}},
		{"status line", "claude-sonnet-5", 0, 0, BudgetOptions{StatusLine: 200 * k, Window: 7}, Budget{200 * k, 167 * k, StatusLineBudget, DerivedBudget}},
		{"configured", "claude-sonnet-5", 0, 160 * k, BudgetOptions{Window: 500 * k, Limit: 400 * k}, Budget{500 * k, 400 * k, ConfiguredBudget, ConfiguredBudget}},
		{"limit beyond the window", "claude-haiku-4-5", 0, 0, BudgetOptions{Limit: 400 * k}, Budget{200 * k, 200 * k, ModelBudget, ConfiguredBudget}},
		{"no compaction", "claude-haiku-4-5", 0, 160 * k, BudgetOptions{NoCompact: true}, Budget{200 * k, 200 * k, ModelBudget, NoCompactionLimit}},
		{"pinned", "claude-haiku-4-5", 0, 160 * k, BudgetOptions{Limit: 90 * k, Pins: map[string]int64{"claude-haiku-4-5": 100 * k}}, Budget{200 * k, 100 * k, ModelBudget, ConfiguredBudget}},
		{"pinned beyond the window", "claude-haiku-4-5", 0, 0, BudgetOptions{Pins: map[string]int64{"claude-haiku-4-5": 960 * k}}, Budget{960 * k, 960 * k, ConfiguredBudget, ConfiguredBudget}},
		{"the session's pin", "m", 0, 0, BudgetOptions{Pins: map[string]int64{"": 50 * k, "m": 60 * k}}, Budget{200 * k, 50 * k, DefaultBudget, ConfiguredBudget}},
		{"another's pin", "m", 0, 0, BudgetOptions{Pins: map[string]int64{"n": 60 * k}}, Budget{200 * k, 167 * k, DefaultBudget, DerivedBudget}},
		{"small window", "m", 0, 0, BudgetOptions{Window: 40 * k}, Budget{40 * k, 20 * k, ConfiguredBudget, DerivedBudget}},
	} {
		if diff := cmp.Diff(tt.want, BudgetFor(tt.model, tt.most, tt.boundary, tt.options)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
