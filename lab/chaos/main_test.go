//go:build unix

package chaos

import (
	"os"
	"testing"

	"github.com/rs/zerolog"

	"github.com/ccship/ccship/e2e/kit"
)

func TestMain(m *testing.M) {
	if servesFaults() {
		return
	}
	zerolog.SetGlobalLevel(zerolog.Disabled) // a toxic has a log of its own
	kit.SideBySide(4)
	os.Exit(kit.Main(m, "ccc"))
}
