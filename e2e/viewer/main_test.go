//go:build unix

package viewer_test

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

func TestMain(m *testing.M) { os.Exit(kit.Main(m, "ccv", closeBrowser, closeGallery)) }
