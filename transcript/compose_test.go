package transcript

import (
	"testing"

	"golang.org/x/text/unicode/norm"
)

func TestCompose(t *testing.T) {
	for _, text := range []string{"", "plain", "한국어 정산", "réservé — naïve", "e\u0301", "ab\xff\u0301c", "ﬁ Å \u212b"} {
		for _, form := range []norm.Form{norm.NFC, norm.NFD} {
			if got := Compose(form.String(text)); got != norm.NFC.String(text) {
				t.Errorf("%q: %q, want %q", form.String(text), got, norm.NFC.String(text))
			}
		}
	}
	if n := testing.AllocsPerRun(10, func() { Compose("plain, then 정산") }); n > 0 {
		t.Errorf("%v allocations for a composed text", n)
	}
}
