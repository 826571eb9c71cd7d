package chart

import (
	"fmt"
	"html/template"
	"math"
	"time"
)

// Bar is one value with its name.
type Bar struct {
	Label string
	Value float64
}

// Bars is values side by side, each a bar with its name above it.
type Bars struct {
	ID, Title, Desc string
	List            []Bar
	Format          func(float64) string
}

// SVG draws it.
func (c Bars) SVG() template.HTML {
	const wide, row = 340.0, 32.0
	var s svg
	s.open(c.ID, "bars", wide, max(row*float64(len(c.List)), 1), c.Title, c.Desc)
	most := 0.0
	for _, b := range c.List {
		most = max(most, b.Value)
	}
	for i, b := range c.List {
		y := row * float64(i)
		s.text(0, y+12, "start", shorten(b.Label, 36))
		s.text(wide, y+12, "end", c.Format(b.Value))
		s.rect("track", 0, y+18, wide, 6, "")
		if most > 0 && b.Value > 0 {
			s.rect("s0", 0, y+18, max(wide*b.Value/most, 2), 6, b.Label+": "+c.Format(b.Value))
		}
	}
	return s.close()
}

func shorten(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

// Column is one step of a time axis.
type Column struct {
	Label  string    // for the mark's title
	Tick   string    // below the axis; "" for none
	Values []float64 // one of each series, ≥ 0
}

// Stacked is columns of series on top of each other.
type Stacked struct {
	ID, Title, Desc string
	Series          []string // names; colours s0, s1, … in their order, the ninth is s0 again
	Columns         []Column
	Format          func(float64) string
}

const (
	plotWidth, plotHeight = 720.0, 200.0
	left, top, below      = 56.0, 10.0, 22.0
)

// SVG draws it.
func (c Stacked) SVG() template.HTML {
	var s svg
	s.open(c.ID, "stacked", left+plotWidth+22, top+plotHeight+below, c.Title, c.Desc)
	most := 0.0
	for _, col := range c.Columns {
		total := 0.0
		for _, v := range col.Values {
			total += v
		}
		most = max(most, total)
	}
	step := nice(most / 4)
	steps := max(1, math.Ceil(most/step*(1-1e-9)))
	ceiling := steps * step
	for i := 0.0; i <= steps; i++ {
		y := top + plotHeight*(1-i/steps)
		s.line(left, y, left+plotWidth, y)
		s.text(left-6, y+3.5, "end", c.Format(step*i))
	}
	wide := plotWidth / float64(max(len(c.Columns), 1))
	for i, col := range c.Columns {
		c.column(&s, col, left+wide*float64(i), wide, ceiling)
	}
	return s.close()
}

func (c Stacked) column(s *svg, col Column, x, wide, ceiling float64) {
	gap := min(wide*.2, 3)
	y := top + plotHeight
	for i, v := range col.Values {
		if v <= 0 {
			continue
		}
		h := plotHeight * v / ceiling
		y -= h
		s.rect("s"+num(float64(i%8)), x+gap/2, y, wide-gap, h, col.Label+": "+c.Series[i]+" "+c.Format(v))
	}
	if col.Tick != "" {
		s.text(x+wide/2, top+plotHeight+15, "middle", col.Tick)
	}
}

var weekdays = [7]string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}

// Week is how much there was in each hour of the week.
type Week struct {
	ID, Title, Desc string
	Hours           [7][24]float64 // Monday first
	Format          func(float64) string
}

// SVG draws it.
func (c Week) SVG() template.HTML {
	const cell, step, label, top = 20.0, 23.0, 46.0, 22.0 // space for the larger letters of a phone
	var s svg
	s.open(c.ID, "heat week", label+24*step, top+7*step, c.Title, c.Desc)
	most := 0.0
	for _, day := range c.Hours {
		for _, v := range day {
			most = max(most, v)
		}
	}
	for h := 0; h < 24; h += 3 {
		s.text(label+float64(h)*step+cell/2, 15, "middle", fmt.Sprintf("%02d", h))
	}
	for d, day := range c.Hours {
		y := top + float64(d)*step
		s.text(label-8, y+cell/2+4, "end", weekdays[d])
		for h, v := range day {
			s.cell(heat(v, most), label+float64(h)*step, y, cell, weekdays[d]+" "+fmt.Sprintf("%02d", h)+":00: "+c.Format(v))
		}
	}
	return s.close()
}

// Year is how much there was on each of the last 53 weeks' days.
type Year struct {
	ID, Title, Desc string
	Last            time.Time          // the day at the end
	Days            map[string]float64 // by 2006-01-02
	Format          func(float64) string
}

// SVG draws it.
func (c Year) SVG() template.HTML {
	const cell, step, label, weeks = 11.0, 13.5, 34.0, 53
	var s svg
	s.open(c.ID, "heat year", label+weeks*step, 18+7*step, c.Title, c.Desc)
	most := 0.0
	for _, v := range c.Days {
		most = max(most, v)
	}
	last := time.Date(c.Last.Year(), c.Last.Month(), c.Last.Day(), 0, 0, 0, 0, time.UTC)
	monday := last.AddDate(0, 0, -7*(weeks-1)-(int(last.Weekday())+6)%7)
	for d := 0; d < 7; d += 2 {
		s.text(label-6, 18+float64(d)*step+cell-1.5, "end", weekdays[d])
	}
	for w := range weeks {
		first := monday.AddDate(0, 0, 7*w)
		if first.Day() <= 7 {
			s.text(label+float64(w)*step, 11, "start", first.Format("Jan"))
		}
		for d := range 7 {
			day := first.AddDate(0, 0, d)
			if day.After(last) {
				continue
			}
			v := c.Days[day.Format(time.DateOnly)]
			s.cell(heat(v, most), label+float64(w)*step, 18+float64(d)*step, cell,
				day.Format("Mon, 2 Jan 2006")+": "+c.Format(v))
		}
	}
	return s.close()
}

// heat returns the class of a value: h0 for nothing, h1 to h4 for quarters of the most there is.
func heat(v, most float64) string {
	if v <= 0 || most <= 0 {
		return "h0"
	}
	return "h" + num(float64(min(1+int(4*v/most), 4)))
}
