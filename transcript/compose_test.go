package transcript

import (
	"testing"

	"github.com/ccship/ccship/e2e/kit"
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
	n := testing.AllocsPerRun(10, func() { Compose("plain, then 정산") })
	kit.Check(t, n <= 0, "%v allocations for a composed text", n)
}
