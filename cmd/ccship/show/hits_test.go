package show

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/remote"
)

var (
	hitsNow = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	cart    = remote.Session{SessionID: "3f2a9c01-0000-4000-8000-000000000001", Project: "shop", Machine: "0c", Host: "laptop"}
	twin    = remote.Session{SessionID: "3f2a9c01-0000-4000-8000-000000000002", Project: "장바구니", Machine: "0d"}
)

// foundIn is a hit whose last word matched, minutes ago.
func foundIn(s remote.Session, line int64, kind, before, match string) remote.Hit {
	at := hitsNow.Add(-time.Duration(line) * time.Minute)
	return remote.Hit{Session: s, Title: "Fix \x1b[31mthe\ncart", Line: line, Time: &at, Kind: kind, Current: true,
		Snippet: []remote.Piece{{Text: before}, {Text: match, Match: true}}}
}

// someHits are of two sessions: one with a title that was written again and again.
func someHits() []remote.Hit {
	var hits []remote.Hit
	for line := range int64(16) {
		hits = append(hits, foundIn(cart, line, "title", "Fix the ", "cart"))
	}
	old := foundIn(twin, 40, "tool", "\x1b[2Jcat\n", "cart.go")
	old.Prompt = "장바구니를 고쳐\n주세요"
	old.Generation, old.Current, old.Time, old.Title = 2, false, nil, ""
	return append(hits, foundIn(cart, 20, "result", "8 tests of the ", "cart"), foundIn(cart, 21, "answer", "I round the ", "cart"),
		foundIn(cart, 22, "prompt", strings.Repeat("please ", 20)+"fix the ", "cart"), foundIn(cart, 23, "thinking", "the ", "cart"), old)
}

func TestHitsText(t *testing.T) {
	v := View{Now: hitsNow, Zone: time.UTC}
	narrow, colours := v, v
	narrow.Columns, colours.Colours = 70, true
	showtest.Golden(t, "hits.txt", strings.Join([]string{
		v.Hits(someHits(), 20, false), narrow.Hits(someHits(), 20, true), colours.Hits(someHits(), 2, false),
		v.Hits(someHits()[:20], 20, false), v.Hits(someHits()[:20], 2, false), v.Hits(nil, 20, false),
	}, "---\n"))
}

// TestHitsOfOneTitle finds a title that was written sixteen times once, after what says more.
func TestHitsOfOneTitle(t *testing.T) {
	out := (View{Now: hitsNow, Zone: time.UTC}).Hits(someHits()[:20], 20, false)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2+5 || !strings.Contains(lines[1], "5 hits") || !strings.Contains(lines[2], "prompt") ||
		!strings.Contains(lines[6], "16 times: Fix the cart") {
		t.Error(out)
	}
}

// TestHitsFitAndShowTheMatch: however narrow the terminal, no line is longer, and each shows what matched.
func TestHitsFitAndShowTheMatch(t *testing.T) {
	for _, columns := range []int{60, 80, 100, 200} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			out := (View{Now: hitsNow, Zone: time.UTC, Columns: columns, Colours: true}).Hits(someHits()[:20], 20, false)
			matches := 0
			for line := range strings.Lines(out) {
				if term.Width(strings.TrimSuffix(line, "\n")) > columns {
					t.Errorf("%d columns: %q", term.Width(line), line)
				}
				if strings.Contains(line, "\x1b[33mcart\x1b[0m") {
					matches++
				}
			}
			if matches != 5 {
				t.Errorf("%d of 5 lines show what matched:\n%s", matches, out)
			}
		})
	}
}
