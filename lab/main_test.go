package main

import (
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
		if err := run(args); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

// TestRows: names are there once, and the list has each.
func TestRows(t *testing.T) {
	var text strings.Builder
	list(&text)
	for _, r := range rows {
		if strings.Count(text.String(), "\n"+r.name+" ") != 1 {
			t.Errorf("%s is not in the list once", r.name)
		}
	}
}

// TestRowsHaveTests: what rows.go names is there: a package that has a test of that name, or one that begins so.
func TestRowsHaveTests(t *testing.T) {
	text, err := os.ReadFile("rows.go")
	if err != nil {
		t.Fatal(err)
	}
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
	if len(all) < 18 {
		t.Errorf("%d tests are named", len(all))
	}
}
