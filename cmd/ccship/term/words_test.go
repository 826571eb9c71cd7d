package term

import "testing"

func TestPrintable(t *testing.T) {
	if got, want := Printable("a\x1b[31m\nb\xff"), "a [31m b?"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
