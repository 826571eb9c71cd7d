package plot

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Bar is one value with the ends of its spread.
type Bar struct {
	Name             string
	Low, Value, High float64
}

const (
	width  = 760
	left   = 190 // of the names
	right  = 90  // of the numbers
	row    = 30
	header = 46
	style  = `<style>text{font:13px system-ui,sans-serif;fill:#57606a}.t{font-weight:600;fill:#24292f}` +
		`@media(prefers-color-scheme:dark){text{fill:#8b949e}.t{fill:#e6edf3}}</style>`
)

// colors are of the first contestant and of all others, then of further lines.
var colors = []string{"#0969da", "#8c959f", "#bf8700", "#1a7f37", "#8250df", "#cf222e", "#d4762c"}

// Bars draws values beside each other on a logarithmic scale; a value that is not positive has no bar.
func Bars(title, unit string, bars []Bar) string {
	var b strings.Builder
	open(&b, header+row*len(bars)+10, title+" ("+unit+", logarithmic)")
	least, most := span(bars)
	at := func(v float64) float64 {
		if v <= 0 || most <= least {
			return 0
		}
		return float64(width-left-right) * max(0, math.Log(v/least)) / math.Log(most/least)
	}
	for i, one := range bars {
		y := header + row*i
		color := colors[min(i, 1)]
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, left-10, y+16, html.EscapeString(one.Name))
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%.1f" height="18" rx="2" fill="%s"/>`,
			left, y+2, max(at(one.Value), 1), color)
		if one.High > one.Low && one.Low > 0 {
			fmt.Fprintf(&b, `<path d="M%.1f %dH%.1f" stroke="#57606a" stroke-width="2"/>`,
				left+at(one.Low), y+11, left+at(one.High))
		}
		fmt.Fprintf(&b, `<text x="%.1f" y="%d">%s</text>`, left+max(at(one.Value), at(one.High))+8, y+16, short(one.Value))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// span is the range of the scale: from below the least value to the largest.
func span(bars []Bar) (least, most float64) {
	least = math.Inf(1)
	for _, one := range bars {
		for _, v := range []float64{one.Low, one.Value, one.High} {
			if v > 0 {
				least, most = min(least, v), max(most, v)
			}
		}
	}
	return least / 2, most
}

// Line is values at several places.
type Line struct {
	Name string
	X, Y []float64
}

// Lines draws lines on scales that are both logarithmic. What is not positive has no point.
func Lines(title, x, y string, lines []Line) string {
	const height, top, bottom = 360, 50, 50
	var b strings.Builder
	open(&b, height, title)
	scale := func(pick func(Line) []float64, from, to float64) func(float64) float64 {
		var all []float64
		for _, l := range lines {
			all = append(all, slices.DeleteFunc(slices.Clone(pick(l)), func(v float64) bool { return v <= 0 })...)
		}
		if len(all) == 0 {
			return func(float64) float64 { return from }
		}
		low, high := math.Log(slices.Min(all)), math.Log(slices.Max(all))
		return func(v float64) float64 { return from + (to-from)*(math.Log(v)-low)/max(high-low, 1e-9) }
	}
	px := scale(func(l Line) []float64 { return l.X }, 70, width-190)
	py := scale(func(l Line) []float64 { return l.Y }, height-bottom, top)
	fmt.Fprintf(&b, `<path d="M70 %dV%dH%d" fill="none" stroke="#8c959f"/>`, top, height-bottom, width-190)
	fmt.Fprintf(&b, `<text x="70" y="%d">%s (logarithmic)</text>`, height-8, html.EscapeString(x))
	fmt.Fprintf(&b, `<text x="70" y="40">%s (logarithmic)</text>`, html.EscapeString(y))
	ticks := map[float64]bool{}
	for i, l := range lines {
		color, path := colors[i%len(colors)], ""
		for k := range l.X {
			if l.X[k] <= 0 || l.Y[k] <= 0 {
				continue
			}
			path += fmt.Sprintf("%s%.1f %.1f", map[bool]string{true: "M", false: "L"}[path == ""], px(l.X[k]), py(l.Y[k]))
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, px(l.X[k]), py(l.Y[k]), color)
			if !ticks[l.X[k]] {
				ticks[l.X[k]] = true
				fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, px(l.X[k]), height-bottom+18, short(l.X[k]))
			}
		}
		fmt.Fprintf(&b, `<path d="%s" fill="none" stroke="%s" stroke-width="2"/>`, path, color)
		if n := len(l.Y); n > 0 {
			fmt.Fprintf(&b, `<text x="%d" y="%d" style="fill:%s">%s: %s</text>`, width-180, top+20*i, color,
				html.EscapeString(l.Name), short(l.Y[n-1]))
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func open(b *strings.Builder, height int, title string) {
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">%s`,
		width, height, html.EscapeString(title), style)
	fmt.Fprintf(b, `<text class="t" x="10" y="22">%s</text>`, html.EscapeString(title))
}

func short(v float64) string {
	if v >= 1e6 {
		return strconv.FormatFloat(v, 'e', 1, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
