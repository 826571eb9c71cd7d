package term

import (
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func TestPrintable(t *testing.T) {
	kit.Equal(t, "Printable", Printable("a\x1b[31m\nb\xff"), "a [31m b?")
}
