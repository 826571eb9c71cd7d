package web_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web"
)

// holds is an answer after which so many tokens were in use.
func holds(n int, used int64) string {
	return fmt.Sprintf(`{"type":"assistant","uuid":"a%[1]d","parentUuid":"a%[2]d","timestamp":"2026-11-20T09:00:00Z","message":{"id":"m%[1]d","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"x"}],"usage":{"input_tokens":%[3]d,"output_tokens":1}}}`, n, n-1, used)
}

func bare(t *testing.T, s *site, id string, q ...string) string {
	t.Helper()
	return s.get(t, sessionPath(id, "/context", append([]string{"bare", "1"}, q...)...))
}

// pins are the links in the wide drawing: what each says and where it leads.
func pins(t *testing.T, page string) (out []string) {
	t.Helper()
	nodes(t, page, func(n *html.Node) {
		if attr(n, "class") != "only-wide" {
			return
		}
		for a := range n.Descendants() {
			if a.Data == "a" {
				out = append(out, attr(a, "aria-label")+" → "+attr(a, "href"))
			}
		}
	})
	return out
}

func TestContextChart(t *testing.T) {
	s := loggedIn(t)
	s.tourWithArtifacts(t)
	page := bare(t, s, tourID)
	mustHave(t, page, "Tokens used over 7 responses: at most 16", "now 16k (9 %)", "3 checkpoints", "1 compaction", "1 rewind", `>80 %</text>`, `>90 %</text>`, `>100 %</text>`, `class="curve"`)
	at := func(line int) string { return fmt.Sprintf(" → /sessions/%s/L/%d\n", short(tourID), line) }
	want := []string{"Checkpoint cp-000000000026: 80 % reached at 80 %, line 39" + at(38), "Checkpoint cp-00000000002b: 90 % reached at 90 %, line 44" + at(43), "Checkpoint cp-000000000030: compaction at 100 %, line 49" + at(48)}
	got := strings.Join(pins(t, page), "\n") + "\n"
	for _, w := range want {
		kit.Has(t, "marks", got, w)
	}
	kit.Has(t, "the marks", got, "Conversation auto-compacted at 167k tokens", "Rewound to line 42")
	full := s.get(t, sessionPath(tourID, "/context"))
	mustHave(t, full, "What was done up to auto_90", "cart.go", "<table", "Compactions and rewinds")
	mustHave(t, s.get(t, sessionPath(tourID, "")), `data-src="/sessions/`+short(tourID)+`/context?bare=1"`, "80 % reached", "cp-000000000026")
	s.put(t, head("quiet"), `{"type":"user","message":{"role":"user","content":"nobody answers"}}`)
	mustHave(t, s.get(t, sessionPath("quiet", "/context")), "No response reports token use yet", "This session has no checkpoints")
	mustLack(t, s.get(t, sessionPath("quiet", "")), `data-keep="context"`)
}

// TestContextChartStaysSmall: a session of 20 000 answers makes no large drawing, and it keeps the extremes.
func TestContextChartStaysSmall(t *testing.T) {
	s := loggedIn(t)
	lines := make([]string, 20_000)
	for i := range lines {
		lines[i] = holds(i, 60_000+int64(i))
	}
	lines[12_345], lines[4_321] = holds(12_345, 166_001), holds(4_321, 1_002)
	s.put(t, head("long"), lines...)
	page := bare(t, s, "long")
	kit.Check(t, len(page) <= 40<<10, "the drawings have %d KB", len(page)>>10)
	mustHave(t, page, "20\u202f000 responses", "at most 166k of 167k (99 %), now 80k (47 %)")
	for class, drawing := range drawings(t, page) {
		low, high := drawing[1], drawing[0]
		for _, y := range drawing {
			low, high = max(low, y), min(high, y)
		}
		// The highest value lies at the limit's line, the lowest at the foot.
		last := drawing[len(drawing)-1]
		kit.Check(t, len(drawing) >= 100 && len(drawing) <= 520 && low-high >= 120 && last < low && last > high,
			"%s has %d values from %v to %v, the last %v", class, len(drawing), high, low, last)
	}
	table := s.get(t, sessionPath("long", "/context"))
	mustHave(t, table, "12\u202f346</a>", "4\u202f322</a>", "166\u202f001")
}

var coordinates = regexp.MustCompile(`[ML][\d.]+ ([\d.]+)`)

// drawings are the heights of each drawing's line.
func drawings(t *testing.T, page string) map[string][]float64 {
	t.Helper()
	out := map[string][]float64{}
	nodes(t, page, func(n *html.Node) {
		if class := attr(n, "class"); strings.HasPrefix(class, "only-") {
			for p := range n.Descendants() {
				if attr(p, "class") != "curve" {
					continue
				}
				for _, m := range coordinates.FindAllStringSubmatch(attr(p, "d"), -1) {
					y := kit.Try(strconv.ParseFloat(m[1], 64)).Must(t)
					out[class] = append(out[class], y)
				}
			}
		}
	})
	kit.Require(t, len(out) == 2, "there are %d drawings", len(out))
	return out
}

// TestContextChartGrows: the chart is of the file as it is, after more lines, a late one and a rewrite.
func TestContextChartGrows(t *testing.T) {
	s := loggedIn(t)
	h := head("grows")
	s.put(t, h, holds(1, 50_000), holds(2, 60_000))
	mustHave(t, bare(t, s, "grows"), "2 responses", "at most 60k", "now 60k")
	h.RewoundTo = 3 // the line before it is not here yet
	s.put(t, h, holds(4, 80_000))
	mustHave(t, bare(t, s, "grows"), "3 responses", "now 80k")
	h.RewoundTo = 2
	s.put(t, h, holds(3, 120_000))
	mustHave(t, bare(t, s, "grows"), "4 responses", "at most 120k", "now 80k")
	h.Generation, h.RewoundTo = 1, 1
	s.put(t, h, holds(9, 55_000))
	mustHave(t, bare(t, s, "grows"), "2 responses", "at most 55k")
	mustHave(t, bare(t, s, "grows", "generation", "0"), "4 responses", "at most 120k")
}

// TestCheckpointOfThePast: a checkpoint whose line a rewrite took out is listed, leads to the past that has the line, and
// is no mark in the drawing of the file as it is.
func TestCheckpointOfThePast(t *testing.T) {
	s := loggedIn(t)
	h := head("past")
	s.put(t, h, holds(1, 50_000), holds(2, 60_000), holds(3, 140_000))
	current, old := s.mark(t, h, "manual", 0, 50_000), s.mark(t, h, "auto_80", 2, 140_000)
	h.Generation, h.RewoundTo = 1, 1
	s.put(t, h, holds(4, 70_000), holds(5, 71_000))
	got := strings.Join(pins(t, bare(t, s, "past")), "\n")
	kit.Check(t, strings.Contains(got, current) && !strings.Contains(got, old), "the marks are\n%s", got)
	page := s.get(t, sessionPath("past", ""))
	mustHave(t, page, "rewritten since", `href="/sessions/past/L/2?generation=0"`)
	a := s.do(t, "GET", "/sessions/past/L/2?generation=0&machine="+machine, nil, nil)
	kit.Check(t, a.code == 200 && strings.Contains(a.body, `id="L2"`), "it leads to %d %s", a.code, a.path)
	kit.Has(t, "the marks of its own past are", strings.Join(pins(t, bare(t, s, "past", "generation", "0")), "\n"), old)
}

// TestContextChartBudget: the limit is the one that the daemon reported, unless that is of another window.
func TestContextChartBudget(t *testing.T) {
	s := loggedIn(t)
	h := head("budget")
	s.put(t, h, holds(1, 50_000))
	for i, c := range []struct {
		reported int64
		want     string
	}{{100_000, "50"}, {967_000, "29"}, {0, "29"}, {20_000, "29"}} {
		s.markAs(t, h, server.Checkpoint{ID: fmt.Sprint("cp-", i), TokensUsed: 50_000, TokenBudget: c.reported, Trigger: "manual", Created: noon.Add(time.Duration(i) * time.Hour), Line: 0})
		mustHave(t, bare(t, s, "budget"), "("+c.want+" %)")
		mustHave(t, s.get(t, sessionPath("budget", "")), "Context "+c.want+" % full")
	}
}

// TestUsagePeriod: a period in which nothing was used becomes the newest one with any use, and what stands under "When"
// is of it too.
func TestUsagePeriod(t *testing.T) {
	s := newSite(t, func(v *web.Viewer) { v.Now = func() time.Time { return today.AddDate(0, 7, 0) } })
	a := s.login(t, s.key)
	kit.Require(t, a.code == http.StatusOK, "login: %d", a.code)
	mustHave(t, s.get(t, "/usage"), "No token use yet")
	shelf(t, s)
	s.put(t, head("older"), prompt("older", "claude-opus-4-8", "2026-03-15T04:00:00Z")...)
	for _, path := range []string{"/usage", "/usage?range=7"} {
		page := s.get(t, path)
		mustHave(t, page, "Nothing was used lately", "days up to 20 November 2026", `<dt>Responses</dt><dd>4</dd>`,
			"Wed, 18 Nov 2026: opus-4-8 $", "the year up to 20 November 2026", "Wed 10:00: 1 answer", "Sun, 15 Mar 2026: 1 answer")
		mustLack(t, page, "Sun 04:00: 1 answer", "Mon, 21 Jun 2027")
	}
	all := s.get(t, "/usage?range=all")
	mustHave(t, all, "hour of the week, all time", "Sun 04:00: 1 answer")
	mustLack(t, all, "Nothing was used lately")
	mustHave(t, s.get(t, "/usage?project=none"), "No token use of what you chose")
}
