package redact

import (
	"bytes"
	"encoding/json"
	"strings"
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

// TestTokenEnds leaves the quote behind a token as it is.
func TestTokenEnds(t *testing.T) {
	m := parallel(t)
	const random = "CHtVvARV6fDHI5AHbZZlT3q8Xw2Jk9Lm4Np7Rs1Uv5Yz"
	for _, token := range []string{"sk-" + random[:22], "pa-" + random[:43], "fnAD" + random[:36], "K001" + random[:27], "AAAAAAAAAAAAAAAAAAAAAA" + random} {
		in := `{"b":` + quote(`{"x":"`+token+`"}`) + `}`
		out, ranges := m.Object([]byte(in))
		kit.Check(t, len(ranges) > 0 && strings.HasSuffix(string(out), `\"}"}`), "%s became %s", in, out)
	}
}
