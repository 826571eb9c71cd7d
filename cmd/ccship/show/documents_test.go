package show

import (
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

// TestLinkList shows documents to people.
func TestLinkList(t *testing.T) {
	v := View{Now: time.Now(), Zone: time.UTC}
	list := control.Documents{Documents: []control.Document{
		{Path: "docs/spec.md", Version: 3, Size: 4321, ChangedAt: v.Now.Add(-time.Minute)},
		{Path: "docs/설계.md", Version: 1, Deleted: true, ChangedAt: v.Now.Add(-2 * time.Hour)},
		{Path: "big.bin", Version: 2, Size: 20_000_000, TooLarge: true, ChangedAt: v.Now.Add(-time.Hour), Problem: "red \x1b[31m"},
	}}
	want := "docs/spec.md  3 versions, changed 1 min ago, 4.3 kB\n" +
		"docs/설계.md  1 version, changed 2 h 0 min ago, deleted\n" +
		"big.bin       2 versions, changed 1 h 0 min ago, 20 MB, too large to send, red \n"
	got := v.Documents(list)
	kit.Check(t, !strings.ContainsRune(got, 0x1b) && strings.HasPrefix(got, want[:len(want)-2]),
		"got:\n%s\nwant:\n%s", got, want)
	v.Columns = 30
	for line := range strings.Lines(v.Documents(list)) {
		kit.Check(t, term.Width(strings.TrimSuffix(line, "\n")) <= 30, "too wide: %q", line)
	}
	kit.Equal(t, "none", v.Documents(control.Documents{}), "nothing is linked\n")
}
