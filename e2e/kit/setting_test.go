package kit

import (
	"slices"
	"testing"
)

// TestSettings: the last value of a name counts, what is not given is as usual, and a value that nobody knows ends the run.
func TestSettings(t *testing.T) {
	t.Setenv(SettingVariable, "full rounds=3 parts=b sizes=1,20 rounds=4")
	Check(t, !IsQuick() && SettingNumber("rounds", 1) == 4 && SettingNumber("kills", 7) == 7 && Setting("corpus", "x") == "x",
		"words are misread")
	got := SettingNumbers("sizes", 5)
	Check(t, slices.Equal(got, []int{1, 20}), "%v", got)
	if got := SettingWords("parts", "a", "b"); !slices.Equal(got, []string{"b"}) {
		t.Error(got)
	}
	if got := SettingWords("stores", "a", "b"); !slices.Equal(got, []string{"a", "b"}) {
		t.Error(got)
	}
	defer func() { Check(t, recover() != nil, "an unknown part is taken") }()
	SettingWords("parts", "a")
}
