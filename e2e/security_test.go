//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThreatModel: every test that a line of the threat model names is there.
func TestThreatModel(t *testing.T) {
	text, err := os.ReadFile("../SECURITY.md")
	must(t, err)
	_, table, _ := strings.Cut(string(text), "## Threat model")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := 0
	for line := range strings.Lines(table) {
		_, tests, found := strings.Cut(line, "(`")
		if !strings.HasPrefix(line, "- ") || !found {
			continue
		}
		rows++
		dir := ""
		for _, word := range regexp.MustCompile("`[^`]+`|\\b(Test|Fuzz)[A-Za-z0-9]+").FindAllString("`"+tests, -1) {
			if strings.HasPrefix(word, "`") {
				dir = strings.Trim(word, "`")
				continue
			}
			if !hasTest(t, filepath.Join("..", filepath.FromSlash(dir)), word) {
				t.Errorf("there is no %s in %s: %s", word, dir, strings.TrimSpace(line))
			}
		}
	}
	if rows < 20 {
		t.Errorf("the threat model has %d lines that name tests", rows)
	}
}

// hasTest reports whether a package has a test.
func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	must(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		if strings.Contains(string(text), "func "+name+"(") {
			return true
		}
	}
	return false
}
