package redact

import (
	"github.com/ccship/ccship/e2e/kit"
	"strings"
	"testing"
)

// TestHostileTexts: no text makes masking more than a fixed amount of work for each of its bytes. A file in a cloned
// repository would else hold up everything.
func TestHostileTexts(t *testing.T) {
	m := parallel(t)
	const n = 1 << 12
	all := map[string]string{
		"a long scheme":         strings.Repeat("a", n) + "://a:b1234567c@host",
		"a long variable":       strings.Repeat("A", n) + "SECRET=abc12345x",
		"variables in one word": strings.Repeat(strings.Repeat("A", 500)+"TOKEN", n/505) + "=abc12345x",
		"a long indent":         strings.Repeat(" ", n) + "password: abcdef12",
		"a long cookie":         strings.Repeat("cookie: a=bbbbbbbb; "+strings.Repeat("b", 600), n/620),
		"a long value":          strings.Repeat("password="+strings.Repeat("a", 500), n/509) + `"`,
		"tokens and keys":       strings.Repeat("[a:aaaaaaaa] AKIAQ3EGSDFKJ4KKAX2Z ", n/34),
		"headers of a JWT":      strings.Repeat("eyJaaaaaaaaaaaaa.", n/17),
	}
	for _, r := range m.rules {
		for _, l := range r.Literals {
			all["only "+l] = strings.Repeat(l, n/len(l))
			all["words "+l] = strings.Repeat(l+" ", n/(len(l)+1))
			all["runs of "+l] = strings.Repeat(l+"-", n/(len(l)+1))
		}
	}
	worst, slowest := 0, ""
	for name, text := range all {
		work := 0
		for _, in := range []string{text, `{"a":` + quote(quote(text)) + `}`} {
			out, _ := m.mask([]byte(in), func(s *scratch, b []byte) {
				s.work = 0
				if in == text {
					m.inText(s, b)
				} else {
					m.inObject(s, b)
				}
				work += s.work
			})
			kit.Check(t, len(out) == len(in), "%s: %d bytes became %d", name, len(in), len(out))
		}
		if each := work / (2 * n); each > worst {
			worst, slowest = each, name
		}
	}
	t.Logf("%d texts of %d bytes; the worst, %q, is looked at %d times", len(all), n, slowest, worst)
	kit.Check(t, worst <= 256, "%q: every byte is looked at %d times", slowest, worst)
}
