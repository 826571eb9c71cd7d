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
