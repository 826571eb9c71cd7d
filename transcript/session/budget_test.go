package session_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
	. "github.com/ccship/ccship/transcript/session"
)

func TestBudget(t *testing.T) {
	const k = 1000
	learned := map[string]int64{"claude-opus-4-5": 155 * k}
	for _, tt := range []struct {
		name           string
		model          string
		most, boundary int64
		options        BudgetOptions
		want           Budget
	}{
		{"nothing known", "", 0, 0, BudgetOptions{}, Budget{200 * k, 167 * k, DefaultBudget}},
		{"native", "claude-sonnet-5", 0, 0, BudgetOptions{}, Budget{1000 * k, 967 * k, ModelBudget}},
		{"native, elsewhere", "us.anthropic.claude-opus-4-8-v1:0", 0, 0, BudgetOptions{}, Budget{200 * k, 167 * k, ModelBudget}},
		{"asked for", "claude-sonnet-4-6", 134 * k, 0, BudgetOptions{Stated: 1000 * k}, Budget{1000 * k, 967 * k, ModelBudget}},
		{"more than native", "claude-opus-4-6", 230 * k, 0, BudgetOptions{}, Budget{1000 * k, 967 * k, SeenBudget}},
		{"boundary", "gateway-model", 174 * k, 167_412, BudgetOptions{}, Budget{200 * k, 167_412, BoundaryBudget}},
		{"boundary of a large window", "gateway-model", 967 * k, 967 * k, BudgetOptions{}, Budget{1000 * k, 967 * k, BoundaryBudget}},
		{"boundary long passed", "claude-sonnet-5", 400 * k, 167 * k, BudgetOptions{}, Budget{1000 * k, 967 * k, ModelBudget}},
		{"learned", "claude-opus-4-5", 150 * k, 0, BudgetOptions{Learned: learned}, Budget{200 * k, 155 * k, LearnedBudget}},
		{"learned, and passed", "claude-opus-4-5", 190 * k, 0, BudgetOptions{Learned: learned}, Budget{200 * k, 167 * k, ModelBudget}},
		{"one overshoot", "claude-opus-4-5", 176_700, 176_700, BudgetOptions{}, Budget{200 * k, 167 * k, ModelBudget}},
		{"one overshoot, and lower ones elsewhere", "claude-opus-4-5", 176_700, 176_700, BudgetOptions{Learned: learned}, Budget{200 * k, 155 * k, LearnedBudget}},
		{"lower than elsewhere", "claude-opus-4-5", 120 * k, 120 * k, BudgetOptions{Learned: learned}, Budget{200 * k, 120 * k, BoundaryBudget}},
		{"much higher than elsewhere", "claude-opus-4-8", 900 * k, 900 * k, BudgetOptions{Learned: map[string]int64{"claude-opus-4-8": 155 * k}}, Budget{1000 * k, 900 * k, BoundaryBudget}},
		{"passed since the overshoot", "claude-opus-4-5", 199 * k, 176_700, BudgetOptions{Learned: learned}, Budget{200 * k, 167 * k, ModelBudget}},
		{"pinned", "claude-haiku-4-5", 0, 160 * k, BudgetOptions{Pins: map[string]int64{"claude-haiku-4-5": 100 * k}}, Budget{200 * k, 100 * k, ConfiguredBudget}},
		{"pinned beyond the window", "claude-haiku-4-5", 0, 0, BudgetOptions{Pins: map[string]int64{"claude-haiku-4-5": 960 * k}}, Budget{960 * k, 960 * k, ConfiguredBudget}},
		{"the session's pin", "m", 0, 0, BudgetOptions{Pins: map[string]int64{"": 50 * k, "m": 60 * k}}, Budget{200 * k, 50 * k, ConfiguredBudget}},
		{"another's pin", "m", 0, 0, BudgetOptions{Pins: map[string]int64{"n": 60 * k}}, Budget{200 * k, 167 * k, DefaultBudget}},
	} {
		diff := cmp.Diff(tt.want, BudgetFor(tt.model, tt.most, tt.boundary, tt.options))
		kit.Check(t, diff == "", "%s (-want +got):\n%s", tt.name, diff)
	}
}
