package search

import (
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestWords: the forms of a word are one term; names are their parts.
func TestWords(t *testing.T) {
	terms := func(text string) (out []term, words string) {
		var list []string
		eachWord(text, func(w []byte, x term) { out, list = append(out, x), append(list, string(w)) })
		return out, strings.Join(list, " ")
	}
	for _, forms := range []string{"round rounds rounding rounded Rounding", "cache caches caching cached", "try tries tried trying",
		"retry retries retried retrying", "stop stops stopping stopped", "process processes processing processed",
		"file files", "index indexes indexing", "pass passes passed", "fix fixes fixing fixed", "search searches searching",
		"dependency dependencies", "use uses", "merge merges merged merging", "call calls called calling"} {
		list, _ := terms(forms)
		for i := range list {
			if list[i] != list[0] {
				t.Errorf("%s: %q is another word", forms, strings.Fields(forms)[i])
			}
		}
	}
	for _, pair := range []string{"status state", "bus bu", "string str", "thing th", "glass glas", "analysis analys", "need ne"} {
		list, _ := terms(pair)
		kit.Check(t, list[0] != list[1], "%s are one word", pair)
	}
	for text, want := range map[string]string{
		"cartTotal, parseHTTPRequest": "cart total carttotal parse http request parsehttprequest",
		"retry_count-max/x.go":        "retry count max go",
		"HTTPServer URLs v2 utf8":     "http server httpserver ur ls urls v2 utf8",
		"CAFE\u0301 Straße":           "café straße",
		"장바구니 a 東京都 x中":               "장바 바구 구니 東京 京都 中",
		"1234567 123456 2026-11-01":   "123456 2026 11 01",
		"4fec7ea0b1 deadbeef":         "deadbeef",
		strings.Repeat("x", 50):       "",
		"":                            "",
	} {
		_, got := terms(text)
		kit.Check(t, got == want, "%s: %s, want %s", text, got, want)
	}
	a, _ := terms("café")
	b, _ := terms("cafe\u0301")
	kit.Check(t, a[0] == b[0], "composed and decomposed differ")
}
