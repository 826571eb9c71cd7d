package chart

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
)

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
