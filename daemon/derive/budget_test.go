package derive

import (
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/state/projection"
)

// A compaction far below what the model can hold counts only if another one lies near it, whatever came between them.
func TestLearnedLimit(t *testing.T) {
	for name, x := range map[string]struct {
		model  string
		tokens []int64 // oldest first
		want   int64
	}{
		"none":                            {"claude-opus-4-5", nil, 0},
		"one":                             {"claude-opus-4-5", []int64{160_000}, 160_000},
		"a slip":                          {"claude-opus-4-5", []int64{60_000}, 0},
		"a slip among others":             {"claude-opus-4-5", []int64{166_000, 60_000, 160_000}, 160_000},
		"two slips":                       {"claude-opus-4-5", []int64{60_000, 75_000, 160_000}, 160_000},
		"seen twice":                      {"claude-opus-4-5", []int64{60_000, 160_000, 62_000}, 60_000},
		"seen twice, the smaller at last": {"claude-opus-4-5", []int64{62_000, 160_000, 60_000}, 60_000},
		"one overshoot":                   {"claude-opus-4-5", []int64{176_700}, 0},
		"an overshoot among others":       {"claude-opus-4-5", []int64{176_700, 155_066, 157_000}, 155_066},
		"late three times":                {"claude-opus-4-5", []int64{176_700, 178_000, 177_000}, 176_700},
		"a large window":                  {"claude-opus-4-8", []int64{900_000}, 900_000},
		"a large window, kept small":      {"claude-opus-4-8", []int64{160_000, 166_000}, 160_000},
		"a large window, small once":      {"claude-opus-4-8", []int64{160_000, 900_000}, 900_000},
		"an unknown model":                {"m", []int64{100_000}, 100_000},
		"an unknown model, smaller":       {"m", []int64{70_000}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var newestFirst, oldestFirst []projection.Compaction
			for i, tokens := range x.tokens {
				c := projection.Compaction{At: int64(i), Tokens: tokens}
				oldestFirst = append(oldestFirst, c)
				newestFirst = append([]projection.Compaction{c}, newestFirst...)
			}
			for _, list := range [][]projection.Compaction{newestFirst, oldestFirst} {
				limits := learned(map[string][]projection.Compaction{x.model: list})
				got, known := limits[x.model]
				kit.Check(t, got == x.want && known == (x.want > 0), "%v: %d, want %d", list, got, x.want)
			}
		})
	}
}
