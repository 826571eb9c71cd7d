package cast

import (
	"bytes"
	"fmt"
	"html"
	"strings"
	"time"
)

// The picture's measures: of a character and the margin, in pixels, and how long it waits at most, and at its end.
const (
	wide, high = 8.4, 18
	margin     = 14
	longest    = 1200 * time.Millisecond
	rests      = 4 * time.Second
	frame      = 80 * time.Millisecond // what is written within it is shown at once
)

// shown is a row of the picture from one moment to another.
type shown struct {
	row      int
	text     string // in SVG
	from, to time.Duration
}

// SVG is the recording as a picture that moves and begins again at its end. Where nothing was shown for long, it waits
// a moment only. Who wants no motion sees the end.
func (r Recording) SVG() []byte {
	rows, length := r.runs()
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" font-size="14" `+
		`font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace">`+"\n",
		float64(r.Columns)*wide+2*margin, r.Rows*high+2*margin)
	b.WriteString("<style>text{fill:#d8dee9;white-space:pre;visibility:hidden}.b{font-weight:700}.d{fill:#8b949e}" +
		".r{fill:#ff7b72}.g{fill:#7ee787}.y{fill:#e3b341}.c{fill:#79c0ff}.z{visibility:visible}\n")
	b.WriteString("@media (prefers-reduced-motion:reduce){text{animation:none!important}}\n")
	for i, s := range rows {
		from, to := 100*s.from.Seconds()/length.Seconds(), 100*s.to.Seconds()/length.Seconds()
		fmt.Fprintf(&b, "@keyframes k%d{0%%{visibility:hidden}%.2f%%{visibility:visible}%.2f%%{visibility:hidden}"+
			"100%%{visibility:hidden}}#t%d{animation:k%d %.2fs step-end infinite}\n",
			i, from, min(to, 99.99), i, i, length.Seconds())
	}
	fmt.Fprintf(&b, "</style>\n"+`<rect width="100%%" height="100%%" rx="8" fill="#0d1117"/>`+"\n")
	for i, s := range rows {
		last := ""
		if s.to == length {
			last = ` class="z"`
		}
		fmt.Fprintf(&b, `<text id="t%d"%s x="%d" y="%d">%s</text>`+"\n", i, last, margin, margin+13+s.row*high, s.text)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// runs are the rows of the picture with the time in which each is seen, and the length of all.
func (r Recording) runs() (all []shown, length time.Duration) {
	s := &screen{columns: r.Columns}
	open := map[int]*shown{}
	var at, before time.Duration
	for i, e := range r.Events {
		s.write(e.Text)
		if i+1 < len(r.Events) && r.Events[i+1].At-e.At < frame {
			continue
		}
		at += min(max(e.At-before, frame), longest)
		before = e.At
		view := s.view(r.Rows)
		for row := range r.Rows {
			text := ""
			if row < len(view) {
				text = view[row].svg()
			}
			if was := open[row]; was != nil && was.text != text {
				was.to = at
				all = append(all, *was)
				delete(open, row)
			}
			if open[row] == nil && text != "" {
				open[row] = &shown{row: row, text: text, from: at}
			}
		}
	}
	length = at + rests
	for row := range r.Rows {
		if was := open[row]; was != nil {
			was.to = length
			all = append(all, *was)
		}
	}
	return all, length
}

// svg is a line, its parts of one look together.
func (l line) svg() string {
	var b strings.Builder
	for i := 0; i < len(l); {
		j := i
		var part strings.Builder
		for ; j < len(l) && l[j].style == l[i].style; j++ {
			part.WriteRune(l[j].r)
		}
		text := html.EscapeString(part.String())
		if l[i].style != "" {
			text = `<tspan class="` + l[i].style + `">` + text + "</tspan>"
		}
		b.WriteString(text)
		i = j
	}
	return strings.TrimRight(b.String(), " ")
}
