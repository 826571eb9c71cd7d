package show

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
)

var (
	hitsNow = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	cart    = remote.Session{SessionID: "3f2a9c01-0000-4000-8000-000000000001", Project: "shop", Machine: "0c", Host: "laptop", Last: hitsNow.Add(-time.Hour)}
	twin    = remote.Session{SessionID: "3f2a9c01-0000-4000-8000-000000000002", Project: "장바구니", Machine: "0d", Last: hitsNow.AddDate(0, -2, 0)}
)

// foundIn is a hit whose last word matched, minutes ago.
func foundIn(line int64, kind, before, match string) protocol.Hit {
	at := hitsNow.Add(-time.Duration(line) * time.Minute)
	return protocol.Hit{Line: line, Time: &at, Kind: kind, Current: true,
		Snippet: []protocol.Piece{{Text: before}, {Text: match, Match: true}}}
}

// someFound are three sessions, with all that is hostile or odd.
func someFound() remote.Ranked {
	old := foundIn(40, "tool", "\x1b[2Jcat\n", "cart.go")
	old.Generation, old.Current, old.Time = 2, false, nil
	gone, next := "9d0c\x1b[31m", "20"
	return remote.Ranked{Total: 30, Next: &next, Missing: []string{"gift\x1b[0m"}, Notes: []string{"projekt: is no filter"},
		Sessions: []remote.RankedSession{
			{Session: cart, Title: "Fix \x1b[31mthe\ncart", Hits: []protocol.Hit{
				foundIn(22, "prompt", strings.Repeat("please ", 20)+"fix the ", "cart"), foundIn(21, "answer", "I round the ", "cart"),
				foundIn(20, "result", "8 tests of the ", "cart"), foundIn(23, "thinking", "the ", "cart"),
				foundIn(0, "title", "Fix the ", "cart")}},
			{Session: twin, Prompt: "장바구니를 고쳐\n주세요", Missing: []string{"round"}, Hits: []protocol.Hit{old}},
			{Session: twin, Gone: &gone, Hits: []protocol.Hit{foundIn(3, "history", "the ", "cart")}},
		}}
}

func TestFoundText(t *testing.T) {
	v := View{Now: hitsNow, Zone: time.UTC}
	narrow, colours := v, v
	narrow.Columns, colours.Columns, colours.Colours = 70, 100, true
	some := someFound()
	some.More = true
	showtest.Golden(t, "hits.txt", strings.Join([]string{
		v.Found(someFound()), narrow.Found(some), colours.Found(someFound()), v.Found(remote.Ranked{})}, "---\n"))
}

// TestHitsFitAndShowTheMatch: however narrow the terminal, no line is longer, and each shows what matched.
func TestHitsFitAndShowTheMatch(t *testing.T) {
	for _, columns := range []int{60, 80, 100, 200} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			out := (View{Now: hitsNow, Zone: time.UTC, Columns: columns, Colours: true}).Found(someFound())
			matches := 0
			for line := range strings.Lines(out) {
				kit.Check(t, term.Width(strings.TrimSuffix(line, "\n")) <= columns, "%d columns: %q", term.Width(line), line)
				if strings.Contains(line, "\x1b[33mcart") {
					matches++
				}
			}
			kit.Check(t, matches == 7, "%d of 7 lines show what matched:\n%s", matches, out)
		})
	}
}
