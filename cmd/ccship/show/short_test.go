package show

import (
	"fmt"
	"testing"

	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/e2e/kit"
)

// TestShortened: ids are cut where others differ, and never inside what tells a further file from its session.
func TestShortened(t *testing.T) {
	ids := []string{"0123456789", "0123456789~2", "0123456789 (1)", "0123456799", "abcdefghij", "abcdefghij/agent-1"}
	got := shortened(ids, func(id *string) string { return *id })
	kit.Equal(t, "short ids", fmt.Sprintf("%q", got),
		`["0123456789" "0123456789~2" "0123456789 (1)" "012345679" "abcdefgh" "abcdefghij/agent-1"]`)
}

// TestPartlyPriced: a cost that leaves out tokens of unknown price says so, in a list and of one session.
func TestPartlyPriced(t *testing.T) {
	cost := 1.5
	for unpriced, want := range map[int64]string{0: "$1.50", 7: "$1.50+"} {
		item := library.Item{Cost: &cost, Unpriced: unpriced, Tokens: 10, Counts: library.Complete}
		kit.Equal(t, "in a list", figures(&item)[2], want)
		kit.Equal(t, "of a session", used(&item), "10 tokens, "+want)
	}
	kit.Equal(t, "without any price", figures(&library.Item{Unpriced: 7, Counts: library.Complete})[2], unknown)
}
