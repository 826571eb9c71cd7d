package main

import (
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
