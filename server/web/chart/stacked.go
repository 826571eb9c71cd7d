package chart

import (
	"html/template"
	"math"
)

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
