package chart_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/web/chart"
)

func plain(f float64) string { return fmt.Sprint(f) }

// marks reads a drawing and answers its marks: class, size and title of each rect.
func marks(t *testing.T, drawing template.HTML) (out []string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(drawing)))
	var class, height string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		kit.Require(t, err == nil, "%v in %s", err, drawing)
		switch x := token.(type) {
		case xml.StartElement:
			if x.Name.Local != "rect" {
				continue
			}
			for _, a := range x.Attr {
				switch a.Name.Local {
				case "class":
					class = a.Value
				case "height":
					height = a.Value
				case "style", "onload":
					t.Errorf("an attribute %s", a.Name.Local)
				}
			}
			out = append(out, class+" "+height)
		case xml.CharData:
			if n := len(out); n > 0 && strings.Contains(string(x), ": ") {
				out[n-1] += " " + string(x)
			}
		}
	}
}

func TestStacked(t *testing.T) {
	c := chart.Stacked{ID: "d", Title: "T <b>", Desc: `D "`, Series: []string{"a<", "b"}, Format: plain, Columns: []chart.Column{
		{Label: "Mon", Tick: "1 <", Values: []float64{3, 1}}, {Label: "Tue", Values: []float64{0, 4}}, {Label: "Wed", Values: []float64{0, 0}}}}
	got := strings.Join(marks(t, c.SVG()), "\n")
	want := "s0 150 Mon: a< 3\ns1 50 Mon: b 1\ns1 200 Tue: b 4"
	kit.Check(t, got == want, "got\n%s\nwant\n%s", got, want)
	for _, w := range []string{`role="img"`, `aria-labelledby="d-t d-d"`, "<title id=\"d-t\">T &lt;b&gt;</title>", "1 &lt;"} {
		kit.Has(t, "the chart", string(c.SVG()), w)
	}
	marks(t, chart.Stacked{ID: "e", Format: plain}.SVG()) // nothing is no accident
}

func TestWeek(t *testing.T) {
	c := chart.Week{ID: "w", Format: plain}
	c.Hours[0][9], c.Hours[6][23] = 8, 1
	got := marks(t, c.SVG())
	kit.Check(t, len(got) == 7*24 && got[9] == "h4 20 Mon 09:00: 8" && got[167] == "h1 20 Sun 23:00: 1" &&
		got[10] == "h0 20 Mon 10:00: 0", "%d marks: %q", len(got), got)
}

func TestYear(t *testing.T) {
	last := time.Date(2026, 11, 21, 23, 0, 0, 0, time.UTC) // a Saturday
	got := marks(t, chart.Year{ID: "y", Last: last, Days: map[string]float64{"2026-11-21": 2, "2025-11-24": 1}, Format: plain}.SVG())
	kit.Equal(t, "days", len(got), 52*7+6)
	kit.Equal(t, "the last day is", got[len(got)-1], "h4 11 Sat, 21 Nov 2026: 2")
	kit.Equal(t, "a day a year ago is", got[7], "h3 11 Mon, 24 Nov 2025: 1")
}

func TestBars(t *testing.T) {
	got := marks(t, chart.Bars{ID: "b", Format: plain, List: []chart.Bar{{"one", 10}, {"<two>", 5}, {"none", 0}}}.SVG())
	kit.Equal(t, "drawn", strings.Join(got, "|"), "track 6|s0 6 one: 10|track 6|s0 6 <two>: 5|track 6")
}

func TestCourse(t *testing.T) {
	c := chart.Area{ID: "c", Title: "T <b>", Desc: `D "`, End: 4, Format: plain,
		Points: []chart.Point{{X: 1, Y: 10}, {X: 2, Y: 90}, {X: 4, Y: 20}}, Limits: []chart.Limit{{Y: 80, Label: "80 %", Class: "l0"}, {Y: 100, Label: "100 %", Class: "l2"}},
		Ticks: []chart.Tick{{X: 0, Label: "one <"}},
		Marks: []chart.Mark{{X: 2, Class: "compaction", Label: `a "compaction"`, URL: `/x?a=1&b="`}, {X: 2, Y: 90, Class: "pin m0", Glyph: "<", Label: "pin <1>", URL: "/y"}, {X: 4, Y: 20, Class: "pin m1", Glyph: "M", Label: "nowhere"}}}
	got := string(c.SVG())
	marks(t, template.HTML(got)) // it is well-formed
	for _, w := range []string{`role="group"`, `aria-labelledby="c-t" aria-describedby="c-d"`, "T &lt;b&gt;", "one &lt;", `href="/x?a=1&amp;b=&#34;"`, `aria-label="pin &lt;1&gt;"`, `</a><text class="glyph" pointer-events="none" aria-hidden="true" x="398" y="18.2" text-anchor="middle">&lt;</text>`,
		`d="M218 162.4L398 45.9L758 147.9"`, `<g class="mark"><title>nowhere</title>`} {
		kit.Has(t, "no in", got, w)
	}
	kit.Equal(t, "links", strings.Count(got, "<a "), 2)
	marks(t, chart.Area{ID: "e", Format: plain}.SVG()) // nothing is no accident
}

// TestCourseLanes: pins that would touch stand in different lanes; what finds no space there is a point on the line.
func TestCourseLanes(t *testing.T) {
	c := chart.Area{ID: "c", End: 100, Format: plain, Points: []chart.Point{{X: 0, Y: 1}, {X: 100, Y: 1}}}
	for range 5 {
		c.Marks = append(c.Marks, chart.Mark{X: 50, Y: 1, Class: "pin m0", Label: "p", URL: "/"})
	}
	c.Marks = append(c.Marks, chart.Mark{X: 90, Y: 1, Class: "pin m0", Label: "p", URL: "/"})
	got := string(c.SVG())
	heads, points := strings.Count(got, `r="8"`), strings.Count(got, `r="3.5"`)
	kit.Check(t, heads == 4 && points == 2, "%d heads, %d points: %s", heads, points, got)
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`cx="398" cy="([\d.]+)" r="8"`).FindAllStringSubmatch(got, -1) {
		seen[m[1]] = true
	}
	kit.Equal(t, fmt.Sprintf("the heads stand at %v", seen), len(seen), 3)
}
