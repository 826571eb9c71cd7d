package term

import "testing"

func TestShellQuoted(t *testing.T) {
	for text, want := range map[string]string{"/a/b-c": "/a/b-c", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "~x": "'~x'", "--a=b:c,d": "--a=b:c,d", "=x": "'=x'", "a\nb": "'a\nb'", "$(x)": "'$(x)'"} {
		if got := Quote(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
