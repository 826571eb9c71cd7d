package setting_test

import (
	"slices"
	"testing"

	"github.com/ccship/ccship/e2e/kit/setting"
)

// TestWords: the last value of a name counts, what is not given is as usual, and a value that nobody knows ends the run.
func TestWords(t *testing.T) {
	t.Setenv(setting.Variable, "full rounds=3 parts=b sizes=1,20 rounds=4")
	if setting.IsQuick() || setting.Number("rounds", 1) != 4 || setting.Number("kills", 7) != 7 || setting.Text("corpus", "x") != "x" {
		t.Error("words are misread")
	}
	if got := setting.Numbers("sizes", 5); !slices.Equal(got, []int{1, 20}) {
		t.Error(got)
	}
	if got := setting.Words("parts", "a", "b"); !slices.Equal(got, []string{"b"}) {
		t.Error(got)
	}
	if got := setting.Words("stores", "a", "b"); !slices.Equal(got, []string{"a", "b"}) {
		t.Error(got)
	}
	defer func() {
		if recover() == nil {
			t.Error("an unknown part is taken")
		}
	}()
	setting.Words("parts", "a")
}
