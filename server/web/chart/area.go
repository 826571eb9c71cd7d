// Package chart draws charts as SVG for a page: stacked columns, bars, a heat map of the week, a year of days, and an
// area with marks. Colours are classes (s0 to s7 for series, h0 to h4 for heat); the drawings have neither style nor
// script. Each drawing has a title and a description, and each mark a title; the page adds a table.
//
// It takes numbers and labels, and knows nothing of sessions.
package chart

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Area is a chart of one value: the area below a curve, horizontal limits, and marks at events.
type Area struct {
	ID, Title, Desc string
	Wide            float64 // of the plot, in units; 0: 720
	Points          []Point // by X
	End             float64 // X at the right edge
	Limits          []Limit
	Marks           []Mark
	Ticks           []Tick
	Format          func(float64) string
}

// Point is one value.
type Point struct{ X, Y float64 }

// Limit is a horizontal line at a value.
type Limit struct {
	Y     float64
	Label string
	Class string // "l0", "l1", "l2", from the least to the most severe
}

// Mark is an event.
type Mark struct {
	X, Y  float64
	Class string // "pin m0" to "pin m4": in a lane above the plot; "compaction", "rewind": over its full height
	Glyph string // in a pin: one or two characters
	Label string // for the reader
	URL   string // "": no link
}

// Tick is a label below the axis.
type Tick struct {
	X     float64
	Label string
}

const (
	areaHeight = 150.0
	lane       = 19.0
	maxLanes   = 3
	pinRadius  = 8.0
	areaLeft   = 38.0
	areaRight  = 44.0
)

// areaDrawing is an Area being drawn.
type areaDrawing struct {
	Area
	svg
	top     float64 // of the plot
	ceiling float64
	lanes   []int // of each mark's pin; -1: no space
}

// SVG draws the chart. It is a group, not an image, because its marks are links.
func (c Area) SVG() template.HTML {
	if c.Wide <= 0 {
		c.Wide = plotWidth
	}
	p := &areaDrawing{Area: c}
	p.ceiling = c.highest()
	used := p.assign()
	p.top = 8 + lane*float64(used)
	p.group(c.ID, areaLeft+c.Wide+areaRight, p.top+areaHeight+below, c.Title, c.Desc)
	p.axis()
	p.area()
	p.limits()
	for _, tall := range []bool{true, false} {
		for i, m := range c.Marks {
			if strings.HasPrefix(m.Class, "pin") != tall {
				p.mark(m, p.lanes[i])
			}
		}
	}
	return p.close()
}

// highest returns the value at the upper edge of the plot.
func (c Area) highest() float64 {
	most := 1.0
	for _, x := range c.Points {
		most = max(most, x.Y)
	}
	for _, l := range c.Limits {
		most = max(most, l.Y)
	}
	return most * 1.03
}

func (p *areaDrawing) x(v float64) float64 {
	if p.End <= 0 {
		return areaLeft
	}
	return areaLeft + p.Wide*min(max(v/p.End, 0), 1)
}

func (p *areaDrawing) y(v float64) float64 {
	return p.top + areaHeight*(1-min(max(v/p.ceiling, 0), 1))
}

// assign gives each pin a lane in which it touches no other, and returns how many lanes are used. A pin without space
// is drawn without a head.
func (p *areaDrawing) assign() int {
	order := make([]int, len(p.Marks))
	p.lanes = make([]int, len(p.Marks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.Marks[a].X, p.Marks[b].X) })
	var ends [maxLanes]float64
	used := 0
	for _, i := range order {
		p.lanes[i] = -1
		if !strings.HasPrefix(p.Marks[i].Class, "pin") {
			continue
		}
		x := p.x(p.Marks[i].X)
		for l := range ends {
			if ends[l] == 0 || x-pinRadius >= ends[l] {
				p.lanes[i], ends[l] = l, x+pinRadius+2
				used = max(used, l+1)
				break
			}
		}
	}
	return used
}

func (p *areaDrawing) axis() {
	step := nice(p.ceiling / 4)
	for v := 0.0; v <= p.ceiling; v += step {
		p.line(areaLeft, p.y(v), areaLeft+p.Wide, p.y(v))
		p.text(areaLeft-5, p.y(v)+3.5, "end", p.Format(v))
	}
	for _, t := range p.Ticks {
		anchor, x := "middle", p.x(t.X)
		switch {
		case x < areaLeft+20:
			anchor, x = "start", areaLeft
		case x > areaLeft+p.Wide-24:
			anchor, x = "end", areaLeft+p.Wide
		}
		p.text(x, p.top+areaHeight+15, anchor, t.Label)
	}
}

// area draws the curve and the area below it.
func (p *areaDrawing) area() {
	if len(p.Points) == 0 {
		return
	}
	var d strings.Builder
	for i, x := range p.Points {
		fmt.Fprintf(&d, "%c%s %s", "ML"[min(i, 1)], one(p.x(x.X)), one(p.y(x.Y)))
	}
	first, last := p.Points[0], p.Points[len(p.Points)-1]
	foot := one(p.top + areaHeight)
	fmt.Fprintf(&p.b, `<path class="area" d="%sL%s %sL%s %sZ"/><path class="curve" d="%s"/>`,
		d.String(), one(p.x(last.X)), foot, one(p.x(first.X)), foot, d.String())
}

// limits draws the limits, and their labels where these do not touch.
func (p *areaDrawing) limits() {
	at := math.Inf(-1)
	list := slices.Clone(p.Limits)
	slices.SortFunc(list, func(a, b Limit) int { return int(b.Y - a.Y) })
	for _, l := range list {
		y := p.y(l.Y)
		fmt.Fprintf(&p.b, `<line class="limit %s" x1="%s" y1="%s" x2="%s" y2="%s"/>`,
			l.Class, num(areaLeft), one(y), num(areaLeft+p.Wide), one(y))
		if y-at >= 11 {
			p.text(areaLeft+p.Wide+5, y+3.5, "start", l.Label)
			at = y
		}
	}
}

// mark draws an event, as a link when it has a URL.
func (p *areaDrawing) mark(m Mark, at int) {
	x, foot := p.x(m.X), p.top+areaHeight
	open, shut := `<g class="mark">`, `</g>`
	if m.URL != "" {
		open, shut = fmt.Sprintf(`<a class="mark" href="%s" aria-label="%s">`, esc(m.URL), esc(m.Label)), `</a>`
	}
	p.b.WriteString(open + "<title>" + esc(m.Label) + "</title>")
	switch m.Class {
	case "compaction":
		fmt.Fprintf(&p.b, `<rect class="compaction" x="%s" y="%s" width="6" height="%s"/>`,
			one(x-3), one(p.top), num(areaHeight))
	case "rewind":
		fmt.Fprintf(&p.b, `<rect class="hit" x="%s" y="%s" width="8" height="%s"/>`,
			one(x-4), one(p.top), num(areaHeight))
		fmt.Fprintf(&p.b, `<line class="rewind" x1="%s" y1="%s" x2="%s" y2="%s"/>`,
			one(x), one(p.top), one(x), one(foot))
	default:
		p.pin(m, x, at)
	}
	p.b.WriteString(shut)
	if strings.HasPrefix(m.Class, "pin") && at >= 0 {
		p.glyph(m.Glyph, x, p.head(at))
	}
}

// glyph stands over a pin, outside its link: it is a picture of what the link's label says in words.
func (p *areaDrawing) glyph(glyph string, x, y float64) {
	fmt.Fprintf(&p.b, `<text class="glyph" pointer-events="none" aria-hidden="true" x="%s" y="%s" `+
		`text-anchor="middle">%s</text>`, num(x), num(y+3.2), esc(glyph))
}

// head returns the height of the middle of a pin in a lane.
func (p *areaDrawing) head(at int) float64 { return p.top - 4 - lane*float64(at) - pinRadius }

// pin is a head in a lane, with a stem down to the value; without space only the point at the value.
func (p *areaDrawing) pin(m Mark, x float64, at int) {
	y := p.y(m.Y)
	if at < 0 {
		fmt.Fprintf(&p.b, `<circle class="%s" cx="%s" cy="%s" r="3.5"/>`, esc(m.Class), one(x), one(y))
		return
	}
	head := p.head(at)
	fmt.Fprintf(&p.b, `<line class="stem" x1="%s" y1="%s" x2="%s" y2="%s"/><circle class="%s" cx="%s" cy="%s" r="%s"/>`,
		one(x), one(head+pinRadius), one(x), one(y), esc(m.Class), one(x), one(head), num(pinRadius))
}

// one formats a coordinate with one decimal: areas have many.
func one(f float64) string { return num(math.Round(f*10) / 10) }

// svg writes one drawing. Text is escaped here, nowhere else.
type svg struct {
	b strings.Builder
}

// open begins a drawing of w × h units. id must be unique in the page.
func (s *svg) open(id, class string, w, h float64, title, desc string) {
	fmt.Fprintf(&s.b, `<svg class="chart %s" role="img" viewBox="0 0 %s %s" aria-labelledby="%s-t %s-d">`, class,
		num(w), num(h), id, id)
	fmt.Fprintf(&s.b, `<title id="%s-t">%s</title><desc id="%s-d">%s</desc>`, id, esc(title), id, esc(desc))
}

// group begins a drawing whose marks are links: a picture would hide them.
func (s *svg) group(id string, w, h float64, title, desc string) {
	fmt.Fprintf(&s.b, `<svg class="chart area-chart" role="group" viewBox="0 0 %s %s"`, num(w), num(h))
	fmt.Fprintf(&s.b, ` aria-labelledby="%s-t" aria-describedby="%s-d">`, id, id)
	fmt.Fprintf(&s.b, `<title id="%s-t">%s</title><desc id="%s-d">%s</desc>`, id, esc(title), id, esc(desc))
}

func (s *svg) rect(class string, x, y, w, h float64, title string) {
	fmt.Fprintf(&s.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"`, class, num(x), num(y), num(w), num(h))
	if class == "grid" || title == "" {
		s.b.WriteString("/>")
		return
	}
	fmt.Fprintf(&s.b, `><title>%s</title></rect>`, esc(title))
}

func (s *svg) cell(class string, x, y, size float64, title string) {
	fmt.Fprintf(&s.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s" rx="2"><title>%s</title></rect>`,
		class, num(x), num(y), num(size), num(size), esc(title))
}

func (s *svg) line(x1, y1, x2, y2 float64) {
	fmt.Fprintf(&s.b, `<line class="grid" x1="%s" y1="%s" x2="%s" y2="%s"/>`, num(x1), num(y1), num(x2), num(y2))
}

// text writes words; anchor is start, middle or end.
func (s *svg) text(x, y float64, anchor, words string) {
	fmt.Fprintf(&s.b, `<text x="%s" y="%s" text-anchor="%s">%s</text>`, num(x), num(y), anchor, esc(words))
}

func (s *svg) close() template.HTML {
	s.b.WriteString("</svg>")
	return template.HTML(s.b.String()) //nolint:gosec // built above, text escaped
}

func esc(s string) string { return template.HTMLEscapeString(s) }

func num(f float64) string { return strconv.FormatFloat(math.Round(f*100)/100, 'f', -1, 64) }

// nice returns the smallest of 1, 2, 5 times a power of ten that is at least v; 1 for nothing.
func nice(v float64) float64 {
	if v <= 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*p >= v*(1-1e-9) {
			return m * p
		}
	}
	return 10 * p
}
