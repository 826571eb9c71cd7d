package state

import (
	"fmt"
	"path/filepath"
	"testing"
)

// An automatic compaction teaches what can be believed: one far below what the model can hold only when another one
// lies near it, whatever came between them, and none that is no working size.
func TestLearnedIsBelievable(t *testing.T) {
	for name, x := range map[string]struct {
		model  string
		tokens []int64
		want   int64
	}{
		"one":                           {"claude-opus-4-5", []int64{160_000}, 160_000},
		"a slip":                        {"claude-opus-4-5", []int64{60_000}, 0},
		"a slip among others":           {"claude-opus-4-5", []int64{166_000, 60_000, 160_000}, 160_000},
		"two slips":                     {"claude-opus-4-5", []int64{60_000, 75_000, 160_000}, 160_000},
		"seen twice":                    {"claude-opus-4-5", []int64{60_000, 160_000, 62_000}, 60_000},
		"seen twice, the less at last":  {"claude-opus-4-5", []int64{62_000, 160_000, 60_000}, 60_000},
		"no working size":               {"claude-opus-4-5", []int64{1000, 1000, 49_999, 49_999}, 0},
		"a large window":                {"claude-opus-4-8", []int64{900_000}, 900_000},
		"a large window, held small":    {"claude-opus-4-8", []int64{160_000, 166_000}, 160_000},
		"a large window, once small":    {"claude-opus-4-8", []int64{160_000, 900_000}, 900_000},
		"of a model nobody knows":       {"m", []int64{100_000}, 100_000},
		"of a model nobody knows, less": {"m", []int64{70_000}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "state", "state.db")
			db := open(t, Options{Path: path})
			commit(t, db, advance(1, 0, 3, 10))
			for i, tokens := range x.tokens {
				c := milestone(fmt.Sprintf("cp-%d", i), i)
				c.Trigger, c.Automatic, c.Tokens, c.Model = "compact", true, tokens, x.model
				derived(t, db, Derivation{File: 1, Checkpoints: []Checkpoint{c}})
			}
			check := func(db *DB, when string) {
				t.Helper()
				if got, known := db.Budgets().Learned[x.model]; got != x.want || known != (x.want > 0) {
					t.Errorf("%s: learned %d of %v, want %d", when, got, x.tokens, x.want)
				}
			}
			check(db, "at once")
			closeNow(t, db)
			check(open(t, Options{Path: path}), "when it is opened again")
		})
	}
}
