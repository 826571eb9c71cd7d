package main

import (
	"github.com/ccship/ccship/e2e/kit"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestShow: outcomes come together at the end, steps of the test runner are left out, and what is said stays.
func TestShow(t *testing.T) {
	var said strings.Builder
	got := show(&said, strings.NewReader("=== RUN   TestX\n    outcome.go:33: | programs: x | 1 |\n    --- PASS: TestX/a (0.1s)\n"+
		"    x_test.go:7: seed 5\n--- FAIL: TestX (1s)\n=== CONT  TestX\nFAIL"))
	if len(got) != 1 || got[0] != "| programs: x | 1 |" || said.String() != "    x_test.go:7: seed 5\n--- FAIL: TestX (1s)\nFAIL" {
		t.Errorf("%q, said %q", got, said.String())
	}
}

// TestRefuses: a name and a word that nobody knows are refused before anything runs.
func TestRefuses(t *testing.T) {
	for _, args := range [][]string{{"nonsense"}, {"soak", "rounds=1"}, {"soak", "-slow"}} {
		err := run(args)
		kit.Check(t, err != nil, "%q is taken", args)
	}
}

// TestRows: names are there once, and the list has each.
func TestRows(t *testing.T) {
	var text strings.Builder
	list(&text)
	for _, r := range rows {
		kit.Equal(t, r.name+" is", strings.Count(text.String(), "\n"+r.name+" "), 1)
	}
}

// TestRowsHaveTests: what rows.go names is there: a package that has a test of that name, or one that begins so.
func TestRowsHaveTests(t *testing.T) {
	text := kit.Try(os.ReadFile("rows.go")).Must(t)
	named := regexp.MustCompile(`"(\.\.?/[\w/-]+)",\s*"(Test\w+)|"-run=(Test\w+)[^\n]*"(\.\.?/[\w/-]+)"\)`)
	all := named.FindAllStringSubmatch(string(text), -1)
	for _, m := range all {
		dir, test := m[1]+m[4], m[2]+m[3]
		files, err := os.ReadDir(dir)
		if !slices.ContainsFunc(files, func(f os.DirEntry) bool {
			source, _ := os.ReadFile(filepath.Join(dir, f.Name()))
			return strings.HasSuffix(f.Name(), "_test.go") && strings.Contains(string(source), "\nfunc "+test)
		}) {
			t.Errorf("%s has no %s: %v", dir, test, err)
		}
	}
	kit.Check(t, len(all) >= 18, "%d tests are named", len(all))
}
