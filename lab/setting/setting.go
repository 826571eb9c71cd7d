// Package setting reads what the program lab was told. Its words, as rounds=3, reach the tests that it runs in one
// variable. Without it a test that takes long is skipped, and one with a short form runs that.
package setting

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Variable is where the words are.
const Variable = "CCSHIP_LAB"

// Quick asks for the short form.
const Quick = "quick"

// Asked skips what only lab runs.
func Asked(t testing.TB) {
	t.Helper()
	if os.Getenv(Variable) == "" {
		t.Skip("lab runs it: go run . in the folder lab lists what there is")
	}
}

// IsQuick reports whether the short form is wanted, which is what a test without lab is.
func IsQuick() bool {
	return os.Getenv(Variable) == "" || slices.Contains(strings.Fields(os.Getenv(Variable)), Quick)
}

// Text is the value of a name; otherwise when none is given.
func Text(name, otherwise string) string {
	value := otherwise
	for word := range strings.FieldsSeq(os.Getenv(Variable)) {
		if v, ok := strings.CutPrefix(word, name+"="); ok {
			value = v
		}
	}
	return value
}

// Words are the parts of a value that commas separate; known says which there can be, none: any.
func Words(t testing.TB, name, otherwise string, known ...string) (all []string) {
	t.Helper()
	for word := range strings.SplitSeq(Text(name, otherwise), ",") {
		if len(known) > 0 && word != "" && !slices.Contains(known, word) {
			t.Fatalf("%s has %q; it takes %s", name, word, strings.Join(known, ","))
		}
		if word != "" {
			all = append(all, word)
		}
	}
	return all
}

// Numbers are the parts of a value as numbers.
func Numbers(t testing.TB, name string, otherwise ...int) []int {
	t.Helper()
	words := Words(t, name, "")
	if len(words) == 0 {
		return otherwise
	}
	var all []int
	for _, word := range words {
		n, err := strconv.Atoi(word)
		if err != nil {
			t.Fatalf("%s has %q: %v", name, word, err)
		}
		all = append(all, n)
	}
	return all
}

// Number is a value as a number.
func Number(t testing.TB, name string, otherwise int) int {
	t.Helper()
	return Numbers(t, name, otherwise)[0]
}
