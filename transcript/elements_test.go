package transcript

import (
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func TestElements(t *testing.T) {
	for array, want := range map[string]string{
		`[]`: "", `[ "a" , {"b":[1]} ,2]`: `"a" {"b":[1]} 2`, `{"a":1}`: "", `"[1]"`: "", `["[","]"]`: `"[" "]"`, "": "", "null": "",
	} {
		var got []string
		for e := range Elements([]byte(array)) {
			got = append(got, string(e))
		}
		kit.Equal(t, array, strings.Join(got, " "), want)
	}
	if first := slices.Collect(func(yield func(string) bool) {
		for e := range Elements([]byte(`["a\u0062","c"]`)) {
			if !yield(StringOf(e)) {
				return
			}
		}
	}); !slices.Equal(first, []string{"ab", "c"}) {
		t.Errorf("decoded: %q", first)
	}
}
