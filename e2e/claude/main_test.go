//go:build unix

package claude_test

import (
	"os"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// What every test needs, by its short name.
var (
	eventually = kit.Eventually
	must       = kit.Must
)

func TestMain(m *testing.M) { os.Exit(kit.Main(m, "ccl")) }

// wanted skips what needs the real Claude Code unless it was asked for.
func wanted(t testing.TB) {
	t.Helper()
	if os.Getenv("CCSHIP_E2E_CLAUDE") != "1" {
		t.Skip("CCSHIP_E2E_CLAUDE=1 runs this with the real Claude Code")
	}
}
