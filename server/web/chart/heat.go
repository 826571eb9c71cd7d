package chart

import (
	"fmt"
	"html/template"
	"time"
)

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
