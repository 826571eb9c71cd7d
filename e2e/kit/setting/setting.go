// Package setting reads what a run of tests is asked for, in words as long or rounds=3. All are in one variable, which
// make and the program lab set. Without it a test that takes long runs its short form, or is skipped.
package setting

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Variable is where the words are.
const Variable = "CCSHIP_TEST"

// Quick and Full are the forms that lab asks for.
const (
	Quick = "quick"
	Full  = "full"
)

func given() []string { return strings.Fields(os.Getenv(Variable)) }

// Has reports whether a word is there.
func Has(word string) bool { return slices.Contains(given(), word) }

// Asked skips what only lab runs.
func Asked(t testing.TB) {
	t.Helper()
	if !Has(Quick) && !Has(Full) {
		t.Skip("lab runs it: go run . in the folder lab lists what there is")
	}
}

// IsQuick reports whether the short form is wanted: nobody asked for the long one.
func IsQuick() bool { return !Has(Full) }

// Text is the value of a name, the last one that is given; otherwise when there is none.
func Text(name, otherwise string) string {
	value := otherwise
	for _, word := range given() {
		if v, ok := strings.CutPrefix(word, name+"="); ok {
			value = v
		}
	}
	return value
}

// Number is a value as a number. One that is none panics: a test with another number would prove something else.
func Number(name string, otherwise int) int { return Numbers(name, otherwise)[0] }

// Numbers are the parts of a value, which commas separate, as numbers.
func Numbers(name string, otherwise ...int) (all []int) {
	for _, word := range Words(name) {
		n, err := strconv.Atoi(word)
		if err != nil {
			panic(Variable + ": " + name + ": " + err.Error())
		}
		all = append(all, n)
	}
	if len(all) == 0 {
		return otherwise
	}
	return all
}

// Words are the parts of a value, which commas separate; known says which there can be and are without it, none: any.
func Words(name string, known ...string) (all []string) {
	for word := range strings.SplitSeq(Text(name, strings.Join(known, ",")), ",") {
		if len(known) > 0 && !slices.Contains(known, word) {
			panic(Variable + ": " + name + " takes " + strings.Join(known, ",") + ", not " + word)
		}
		if word != "" {
			all = append(all, word)
		}
	}
	return all
}
