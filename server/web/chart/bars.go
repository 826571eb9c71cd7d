package chart

import "html/template"

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
