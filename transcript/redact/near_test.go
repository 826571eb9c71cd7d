package redact

import (
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestNearAgrees: the quick checks see what the expressions of the rules see: far values, unusual ends, deep escapes.
func TestNearAgrees(t *testing.T) {
	m := parallel(t)
	const secret, key = "hQ7zk2Wp9x", "a8f2k9d0s7q1w3e5r6t8y2u4"
	far := strings.Repeat(" ", 20)
	for _, text := range []string{
		"password:" + far + secret,
		"  password:" + far + `"` + secret + `"`,
		"db.password=" + far + secret,
		"password:\n" + far + secret,
		"password:\r\n  " + secret,
		"<password>\n" + far + secret + "\n</password>",
		"<password><![CDATA[" + secret + "]]></password>",
		"datadog_app" + far + `= "` + key + `"`,
		"datadog_app =" + far + `"` + key + `"`,
		"\"Password\" :\t\"" + secret + `"`,
		`WiFi.begin("net", "` + secret + `")`,
		"olcRootPW: " + secret,
		`{"pw":"` + secret + `"}`,
	} {
		want := strings.NewReplacer(secret, "", key, "").Replace(text)
		for layers := range 4 {
			out := m.String(text)
			kit.Check(t, !strings.Contains(out, secret) && !strings.Contains(out, key), "%q below %d layers stays", want, layers)
			text = `{"content":` + quote(text) + `}`
		}
	}
}
