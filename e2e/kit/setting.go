package kit

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// SettingVariable says what a run of tests is asked for, in words as long or rounds=3; make and the program lab set it.
// Without it a test that takes long runs its short form, or is skipped.
const SettingVariable = "CCSHIP_TEST"

// QuickForm and FullForm are the forms that lab asks for.
const (
	QuickForm = "quick"
	FullForm  = "full"
)

func settings() []string { return strings.Fields(os.Getenv(SettingVariable)) }

// HasSetting reports whether a word is there.
func HasSetting(word string) bool { return slices.Contains(settings(), word) }

// OnlyInLab skips what only lab runs.
func OnlyInLab(t testing.TB) {
	t.Helper()
	if !HasSetting(QuickForm) && !HasSetting(FullForm) {
		t.Skip("lab runs it: go run . in the folder lab lists what there is")
	}
}

// IsQuick reports whether the short form is wanted: nobody asked for the long one.
func IsQuick() bool { return !HasSetting(FullForm) }

// Setting is the value of a name, the last one that is given; otherwise when there is none.
func Setting(name, otherwise string) string {
	value := otherwise
	for _, word := range settings() {
		if v, ok := strings.CutPrefix(word, name+"="); ok {
			value = v
		}
	}
	return value
}

// SettingNumber is a value as a number. One that is none panics: a test with another number would prove something else.
func SettingNumber(name string, otherwise int) int { return SettingNumbers(name, otherwise)[0] }

// SettingNumbers are the parts of a value, which commas separate, as numbers.
func SettingNumbers(name string, otherwise ...int) (all []int) {
	for _, word := range SettingWords(name) {
		n, err := strconv.Atoi(word)
		if err != nil {
			panic(SettingVariable + ": " + name + ": " + err.Error())
		}
		all = append(all, n)
	}
	if len(all) == 0 {
		return otherwise
	}
	return all
}

// SettingWords are the parts of a value, which commas separate; known says which there can be and are without it, none:
// any.
func SettingWords(name string, known ...string) (all []string) {
	for word := range strings.SplitSeq(Setting(name, strings.Join(known, ",")), ",") {
		if len(known) > 0 && !slices.Contains(known, word) {
			panic(SettingVariable + ": " + name + " takes " + strings.Join(known, ",") + ", not " + word)
		}
		if word != "" {
			all = append(all, word)
		}
	}
	return all
}
