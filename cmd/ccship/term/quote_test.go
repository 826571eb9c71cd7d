package term

import (
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func TestShellQuoted(t *testing.T) {
	for text, want := range map[string]string{"/a/b-c": "/a/b-c", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "~x": "'~x'", "--a=b:c,d": "--a=b:c,d", "=x": "'=x'", "a\nb": "'a\nb'", "$(x)": "'$(x)'"} {
		got := Quote(text)
		kit.Check(t, got == want, "%q: %s, want %s", text, got, want)
	}
}
