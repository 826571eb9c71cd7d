package sqlite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/search"
)

// TestTinyBudget: a search that may read next to nothing a page finds each line once and newest first, over more pages,
// also lines of one moment, and also where a page finds nothing.
func TestTinyBudget(t *testing.T) {
	s := openTexts(t)
	texts := func(hay int) (list []string) {
		for i := range 30 {
			text := fmt.Sprint("needle ", i)
			if i%9 != 0 {
				text = fmt.Sprint("need eedl edle ", i) // all of its parts
			}
			list = append(list, text+strings.Repeat(" hay", hay))
		}
		return list
	}
	say(t, s, 1, "a", texts(350)...) // two or three of them make a doc
	say(t, s, 1, "b", texts(550)...) // at the same times, but their docs begin elsewhere
	var want []string
	for i := 27; i >= 0; i -= 9 {
		want = append(want, fmt.Sprint("b", i), fmt.Sprint("a", i))
	}
	for _, when := range []string{"before segments are merged", "after"} {
		for _, budget := range []int{0, 1000, 100_000_000} {
			got, cut, empty := walk(t, search.NewWithin(of(s), s.lines, &s.Finder, search.Bounds{Bytes: budget}))
			kit.Equal(t, fmt.Sprintf("%s, with %d bytes a page: found", when, budget), got, want)
			kit.Equal(t, fmt.Sprintf("%s, with %d bytes a page: %d pages ended early", when, budget, cut), (cut > 0),
				(budget < 100_000_000))
			kit.Check(t, budget != 0 || empty != 0, "%s: no page found nothing", when)
		}
		kit.Must(t, index(s, of(s)).Merge(t.Context(), 1))
	}
}

// walk goes through all pages of a search: what it finds, how many of them ended early, and how many found nothing.
func walk(t *testing.T, x *search.Index) (found []string, cut, empty int) {
	t.Helper()
	q := server.SearchQuery{Text: "needle", Limit: 4}
	for range 500 {
		hits := kit.Try(x.Search(t.Context(), everyone, q)).Must(t)
		for _, h := range hits.List {
			found = append(found, fmt.Sprint(h.Session.SessionID, h.Line))
		}
		if hits.More {
			cut++
		}
		if len(hits.List) == 0 && hits.Next != "" {
			empty++
		}
		if q.After = hits.Next; q.After == "" {
			return found, cut, empty
		}
	}
	t.Fatal("the search does not end")
	return nil, 0, 0
}

// TestLiveSession: of a session whose lines are derived one by one few segments are left, without anybody asking for
// that, and each line is found.
func TestLiveSession(t *testing.T) {
	s := kit.Try(Open(t.Context(), t.TempDir()+"/server.db")).Must(t)
	t.Cleanup(func() { _ = s.Close() })
	const lines = 200
	var texts []string
	for i := range lines {
		texts = append(texts, fmt.Sprintf("the needle number %d, with words of its own: %x", i, i*i*7919))
	}
	say(t, s, 1, "live", texts...)
	n := lines
	for end := time.Now().Add(2 * time.Minute); n >= 24 && time.Now().Before(end); {
		select {
		case <-t.Context().Done():
		case <-time.After(10 * time.Millisecond):
		}
		n = count(t, s, `SELECT count(*) FROM gram_segments`)
	}
	t.Logf("%d segments, %d pages", n, count(t, s, `SELECT count(*) FROM gram_pages`))
	kit.Check(t, n < 24, "%d segments of %d lines are left", n, lines)
	kit.Equal(t, "lines found", len(foundLines(t, s, "needle")), lines)
}
