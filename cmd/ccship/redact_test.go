package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/e2e/kit"
)

// TestRedactTestUTF16 shows what is masked in UTF-16 as in another text, and nothing in what is no text.
func TestRedactTestUTF16(t *testing.T) {
	t.Parallel()
	c := &config.Config{Path: filepath.Join(t.TempDir(), "config.toml")}
	const text = "some words\nTOKEN=ghp_abcdEFGH1234abcdEFGH1234abcdEFGH1234\n"
	wide := "\xff\xfe" + strings.Join(strings.Split(text, ""), "\x00") + "\x00"
	var tokens []string
	for _, in := range []string{text, wide} {
		report, err := findSecrets(c, []byte(in))
		kit.Require(t, err == nil && len(report.Secrets) == 1 && report.Secrets[0].Line == 2, "%q: %+v, %v", in, report, err)
		tokens = append(tokens, report.Secrets[0].Token)
	}
	kit.Check(t, tokens[0] == tokens[1], "%q", tokens)
	report, err := findSecrets(c, []byte("\x89PNG\x00"+text))
	kit.Check(t, err == nil && len(report.Secrets) == 0, "%+v, %v", report, err)
}
