package web_test

import (
	"testing"
	"time"

	"github.com/ccship/ccship/transcript/provenance"
)

// TestWhyPage shows what is known of a commit that the address has, and refuses any other address.
func TestWhyPage(t *testing.T) {
	s := loggedIn(t)
	f := provenance.File{Paths: []string{"shop/cart.go"}}
	sum, plain, _ := provenance.SumOf("func total(c Cart) int {")
	f.Lines = append(f.Lines, provenance.Added{Number: 1, Sum: sum, Plain: plain})
	text, ok, err := provenance.Link([]provenance.Commit{{Name: "0123456789abcdef", At: time.Now(), Files: []provenance.File{f}}})
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	mustHave(t, s.get(t, "/why?q="+text), "Commit 0123456789a…", "0 of 1 line proven", "no transcript of that time",
		"No session is proven to have written it.")
	for _, bad := range []string{"", "x", "AAAA"} {
		if a := s.do(t, "GET", "/why?q="+bad, nil, nil); a.code != 400 {
			t.Errorf("%q: %d", bad, a.code)
		}
	}
}
