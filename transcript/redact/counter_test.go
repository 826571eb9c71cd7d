package redact

import (
	"github.com/ccship/ccship/e2e/kit"
	"strings"
	"testing"
)

// TestCounter counts tokens, however they are written.
func TestCounter(t *testing.T) {
	m := parallel(t)
	key := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("MIIEvQIBADANBgkqhkiG9w0B\n", 9) + "-----END PRIVATE KEY-----"
	text, ranges := m.Text([]byte(strings.Repeat("a "+secret+" b "+key+" [1] x[i:j] ", 5)))
	for _, piece := range []int{1, 7, 64, len(text)} {
		var c Counter
		for rest := text; len(rest) > 0; {
			n := min(piece, len(rest))
			wrote, err := c.Write(rest[:n])
			kit.Require(t, wrote == n && err == nil, "%v %v", wrote, err)
			rest = rest[n:]
		}
		kit.Check(t, c.N == int64(len(ranges)) && c.N == 10, "in pieces of %d: %d tokens, want %d", piece, c.N,
			len(ranges))
	}
}
