package show

import (
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

// TestSayHowFar: an import that is stopped says how much is on the server; without figures it says nothing.
func TestSayHowFar(t *testing.T) {
	for want, s := range map[string]control.Status{
		"25 MB of 100 MB (25 %) are on the server; it continues\n": {
			Files: &control.Files{Bytes: 100_000_000, ReadBytes: 30_000_000}, Outbox: &control.Outbox{Bytes: 5_000_000}},
		"0 B of 100 MB (0 %) are on the server; it continues\n": {
			Files: &control.Files{Bytes: 100_000_000}, Outbox: &control.Outbox{Bytes: 5_000_000}},
		"": {Files: &control.Files{}, Outbox: &control.Outbox{}},
	} {
		var said strings.Builder
		(&App{Stderr: &said}).SayHowFar(s, "it continues")
		kit.Check(t, said.String() == want, "it says %q, want %q", said.String(), want)
	}
}
