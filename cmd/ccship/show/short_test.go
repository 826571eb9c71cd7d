package show

import (
	"fmt"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestShortened: ids are cut where others differ, and never inside what tells a further file from its session.
func TestShortened(t *testing.T) {
	ids := []string{"0123456789", "0123456789~2", "0123456789 (1)", "0123456799", "abcdefghij", "abcdefghij/agent-1"}
	got := shortened(ids, func(id *string) string { return *id })
	kit.Equal(t, "short ids", fmt.Sprintf("%q", got),
		`["0123456789" "0123456789~2" "0123456789 (1)" "012345679" "abcdefgh" "abcdefghij/agent-1"]`)
}
