package redact

import (
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestClean: what a string of many lines hides is found in each of them, and whatever its name is: no string counts as
// clean because the same bytes were searched before where nothing tells that they are a secret. An escape makes the
// masker look at each string.
func TestClean(t *testing.T) {
	m := parallel(t)
	text := strings.Repeat("Kx7", leastClean/3) + "q9Zr4"
	for range 3 {
		for _, name := range []string{"content", "stdout", "text"} {
			for _, words := range []string{"words " + strings.Repeat("and more words ", leastClean), text} {
				in := `{"type":"user","url":"%41","` + name + `":"` + words + `"}`
				out, ranges := m.Line([]byte(in))
				kit.Check(t, string(out) == in && len(ranges) == 0, "%s: %.80s: %v", name, in, ranges)
			}
		}
		for _, name := range []string{"password", "api_key"} {
			in := `{"type":"user","` + name + `":"` + text + `"}`
			_, ranges := m.Line([]byte(in))
			kit.Check(t, len(ranges) == 1, "%s: %.80s stays", name, in)
		}
		long := strings.Repeat("some words ", leastClean) + secret
		out, ranges := m.Line([]byte(`{"type":"user","toolUseResult":{"stdout":"` + long + `"},"content":"` + long + `"}`))
		kit.Check(t, len(ranges) == 2 && !strings.Contains(string(out), secret), "%d ranges", len(ranges))
	}
}
