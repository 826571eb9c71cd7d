package sqlstore_test

import (
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// TestFoldText: each composed character is folded as it is alone, whatever stands around it.
func TestFoldText(t *testing.T) {
	for text, want := range map[string]string{
		"": "", " \t\n": "", "Ab": "ab", "  A\x00\x7f\u00a0B  ": "a b", "ÄÖ ẞ İ": "äö ß i", "검색 \u3000 x": "검색 x", "a\xffb": "a\ufffdb",
		"E\u0301te\u0301": "été", "\u1112\u1161\u11ab": "한",
		"\xff": "\ufffd", "A\u0085Z[`{": "a z[`{",
	} {
		kit.Equal(t, text+" becomes", sqlstore.FoldText(text), want)
		kit.Equal(t, text+" is appended as", string(sqlstore.AppendFolded([]byte("x"), text)), "x"+want)
	}
	for r := range rune(0x3000) {
		want := strings.Map(unicode.ToLower, norm.NFC.String(string(r)))
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			want = ""
		}
		got := strings.Trim(sqlstore.FoldText("- "+string(r)+"-"), "-")
		kit.Check(t, strings.TrimSpace(got) == want || r == '-', "%q becomes %q, want %q", r, got, want)
	}
}
