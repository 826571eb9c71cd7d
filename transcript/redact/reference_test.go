package redact

import (
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"pgregory.net/rapid"
)

// TestReference compares what is masked with what a slow finder masks that tries expressions everywhere: rules without
// literals, without a check of what is next to them, and without automatons.
func TestReference(t *testing.T) {
	fast := kit.Try(New(Key{1})).Must(t)
	var slow []*rule
	for _, r := range fast.rules {
		if !r.Token && r.Before < 1000 {
			slow = append(slow, r)
		}
	}
	const value = "Zx81kQ9vLm3pRt7wYb2c"
	slots := [][]string{
		{"", "\n", "x ", "- ", "12→", `"`, "export ", "?a=1&"},
		{"password", " pw", "db_secret", "api key", "accessToken", "token", "algolia_key", "docker login", "machine h login kim password", "[h.x]:587"},
		{"", "", `"`, "']", " ", "  ", "\u200b"},
		{":", "=", ":=", "=>", " ", " -p ", ` : {"value":`, " kim:"},
		{"", " ", "\n", "\\\n", `"`, "'", "!vault ", "\t"},
		{value, value, value + ";", "k3Jd81!mPq2+x9", "config.Value", "Uint8Array", "two words"},
		{"", "\n", `"`, "'", ",", "}", "\\\n", "</a>", " end"},
	}
	rapid.Check(t, func(t *rapid.T) {
		text := ""
		for _, slot := range slots {
			text += rapid.SampledFrom(slot).Draw(t, "part")
		}
		plainText := text
		for range rapid.IntRange(0, 3).Draw(t, "layers") {
			text = quote(map[string]string{"content": text})
		}
		out, _ := fast.Line([]byte(text))
		for _, r := range slow {
			loc := r.expression().FindSubmatchIndex([]byte(plainText))
			if loc == nil {
				continue
			}
			from, to := r.secret(loc)
			secret := []byte(plainText)[from:to]
			if from < 0 || !r.allowed([]byte(plainText), loc, secret, "") || !slices.Contains([]string{value, "k3Jd81!mPq2+x9"}, string(secret)) {
				continue
			}
			if strings.Count(string(out), string(secret)) > 0 {
				t.Fatalf("%s finds %q in %q, which became %q", r.Name, secret, plainText, out)
			}
		}
	})
}
