package redact

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestNested has secrets behind escapes of several layers, as in transcripts that show transcripts.
func TestNested(t *testing.T) {
	t.Parallel()
	m, err := New(Key{1})
	kit.Require(t, err == nil, "%v", err)
	const secret = "Zx81kQ9vLm3pRt7wYb2c"
	for _, text := range []string{
		`Bearer "` + secret + `"`, "Bearer\n" + secret, `tool --password "` + secret + `"`, "tool --password \\\n" + secret,
		"tool --password \"" + secret + "\"\nnext", `{"name":"DB_PASSWORD","value":"` + secret + `"}`,
	} {
		line := []byte(text)
		for n := 1; n <= 3; n++ {
			line, err = json.Marshal(map[string]string{"content": string(line)})
			kit.Require(t, err == nil, "%v", err)
			masked, _ := m.Line(line)
			kit.Check(t, !bytes.Contains(masked, []byte(secret)), "in %d layers: %s", n, masked)
		}
	}
}
