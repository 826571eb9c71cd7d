//go:build unix

package e2e

import (
	"os"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// What every case needs, by its short name.
var (
	eventually = kit.Eventually
	must       = kit.Must
	pass       = kit.Pass
)

// TestMain: as the benchmark's floor the test binary is its own second program.
func TestMain(m *testing.M) {
	if os.Getenv(floorEnv) != "" {
		os.Exit(floorMain())
	}
	if servesAsSystemd() {
		return
	}
	kit.SideBySide(8)
	os.Exit(kit.Main(m, "ccs"))
}
