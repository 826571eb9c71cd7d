package redact

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestReference compares what is masked with what a slow finder masks that tries expressions everywhere: rules without
// literals, without a check of what is next to them, and without a smaller expression.
func TestReference(t *testing.T) {
	fast, err := New(Key{1})
	if err != nil {
		t.Fatal(err)
	}
	var slow []*rule
	for _, r := range fast.rules {
		if !r.Token && r.Before < 1000 {
			slow = append(slow, r)
		}
	}
	const value = "Zx81kQ9vLm3pRt7wYb2c"
	parts := []string{
		"password", "db_secret", "api key", "accessToken", "token", "algolia_key", "docker login", "az acr login", "machine h login kim",
		"[smtp.h]:587 kim", `"name"`, "value", " ", " ", "=", ":", ": ", " = ", ":=", "=>", "\n", "\n", `"`, "'", "{", "}", ",", ";", "\\\n", `\`,
		"-p ", " -u kim ", value, value, "config.Value", "process.env.X", "Uint8Array", "two words", "k3Jd81!mPq2+x9", "!vault ", "\u200b", "→",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 2, 9).Draw(t, "parts"), "")
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
