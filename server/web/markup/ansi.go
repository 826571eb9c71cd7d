package markup

import (
	"html/template"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ANSI returns a terminal's output: colours and attributes (SGR) become spans with classes, every other control
// sequence is left out, and what a carriage return or a backspace overwrote does not show. left is how much of s is
// left out for lack of space, in bytes.
func (p *Budget) ANSI(s string) (html template.HTML, left int64) {
	if !strings.ContainsAny(s, "\x1b\r\b\u009b") {
		return p.Text(s)
	}
	t := terminal{out: p.open(len(s))}
	for len(s) > 0 && !t.out.full {
		at := strings.IndexAny(s, "\x1b\u009b")
		if at < 0 {
			t.line = append(t.line, s...)
			s = ""
			break
		}
		t.line = append(t.line, s[:at]...)
		s = s[at:]
		s = s[t.sequence(s):]
	}
	t.flush()
	return p.close(t.out), int64(len(s)) + t.left
}

// terminal writes runs of text of one style. The text in line may still be overwritten.
type terminal struct {
	out   *output
	line  []byte // of the current style
	style style
	left  int64 // bytes for which there was no space
}

// style is a set of attributes. Colours are 1 + their number; 0 is the default.
type style struct {
	fg, bg int
	on     uint16 // by the number of the SGR parameter that sets each attribute
}

// flush writes the text of the current style.
func (p *terminal) flush() {
	if len(p.line) == 0 {
		return
	}
	text := overwrite(string(p.line))
	p.left += int64(len(text) - p.out.span(p.style.classes(), text))
	p.line = p.line[:0]
}

// sequence reads the control sequence that s begins with and answers its length, at least one character.
func (p *terminal) sequence(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	kind := byte('[')
	if n == 1 { // ESC and what it introduces
		if len(s) == 1 {
			return 1
		}
		kind = s[1]
		n = 2
	}
	switch kind {
	case '[':
		return n + p.control(s[n:])
	case ']', 'P', '_', '^', 'X': // strings, up to BEL or ST: titles, links, pictures
		for end := n; end < len(s); end++ {
			if s[end] == 7 {
				return end + 1
			}
			if s[end] == 0x1b {
				return min(end+2, len(s))
			}
		}
		return len(s)
	case '(', ')', '#', '%':
		return min(n+1, len(s))
	}
	if kind < 0x20 || kind > 0x7e {
		return 1
	}
	return n
}

// control reads the parameters and the final character of a control sequence and answers their length. It applies
// styles; others have no effect.
func (p *terminal) control(s string) int {
	end := 0
	for end < len(s) && (s[end] < 0x40 || s[end] > 0x7e) {
		if s[end] < 0x20 || s[end] > 0x7e {
			return end // broken off
		}
		end++
	}
	if end == len(s) {
		return end
	}
	if s[end] == 'm' {
		p.flush()
		p.style.set(s[:end])
	}
	return end + 1
}

// set applies SGR parameters. Unknown ones change nothing.
func (s *style) set(params string) {
	list := strings.FieldsFunc(params, func(r rune) bool { return r == ';' || r == ':' })
	if len(list) == 0 {
		*s = style{}
		return
	}
	for i := 0; i < len(list); i++ {
		n, err := strconv.Atoi(list[i])
		if err != nil {
			return
		}
		if n == 38 || n == 48 {
			c, used := extended(list[i+1:])
			i += used
			if n == 38 {
				s.fg = c
			} else {
				s.bg = c
			}
			continue
		}
		s.one(n)
	}
}

// The attributes, by the SGR parameter that sets each. What ends one is 20 more, except for bold.
const (
	bold, dim, italic, underline = 1, 2, 3, 4
	inverse, struck              = 7, 9
)

func (s *style) one(n int) {
	switch {
	case n == 0:
		*s = style{}
	case n > 0 && n < 10:
		s.on |= 1 << n
	case n == 22:
		s.on &^= 1<<bold | 1<<dim
	case n > 22 && n < 30:
		s.on &^= 1 << (n - 20)
	case n >= 30 && n <= 37:
		s.fg = 1 + n - 30
	case n == 39:
		s.fg = 0
	case n >= 40 && n <= 47:
		s.bg = 1 + n - 40
	case n == 49:
		s.bg = 0
	case n >= 90 && n <= 97:
		s.fg = 1 + 8 + n - 90
	case n >= 100 && n <= 107:
		s.bg = 1 + 8 + n - 100
	}
}

// extended reads 5;N or 2;R;G;B as the nearest of the sixteen colours, and how many parameters that took.
func extended(list []string) (color, used int) {
	at := func(i int) int {
		if i >= len(list) {
			return 0
		}
		n, err := strconv.Atoi(list[i])
		if err != nil {
			return 0
		}
		return min(max(n, 0), 255)
	}
	switch at(0) {
	case 5:
		n := at(1)
		if n < 16 {
			return 1 + n, 2
		}
		if n >= 232 {
			v := 8 + 10*(n-232)
			return 1 + nearest(v, v, v), 2
		}
		step := func(v int) int {
			if v == 0 {
				return 0
			}
			return 55 + 40*v
		}
		n -= 16
		return 1 + nearest(step(n/36), step(n/6%6), step(n%6)), 2
	case 2:
		return 1 + nearest(at(1), at(2), at(3)), 4
	}
	return 0, len(list)
}

// palette is roughly what terminals show for the sixteen colours.
var palette = [16][3]int{
	{0, 0, 0}, {170, 0, 0}, {0, 150, 0}, {170, 110, 0}, {0, 0, 200}, {170, 0, 170}, {0, 150, 150}, {190, 190, 190},
	{100, 100, 100}, {255, 80, 80}, {80, 255, 80}, {255, 255, 80},
	{100, 100, 255}, {255, 80, 255}, {80, 255, 255}, {255, 255, 255},
}

func nearest(r, g, b int) int {
	best, least := 0, 1<<30
	for i, c := range palette {
		dr, dg, db := r-c[0], g-c[1], b-c[2]
		if d := dr*dr + dg*dg + db*db; d < least {
			best, least = i, d
		}
	}
	return best
}

// classes names a style: f0 to f15 and b0 to b15 for colours, one word for each attribute.
func (s style) classes() string {
	if s == (style{}) {
		return ""
	}
	fg, bg := s.fg, s.bg
	out := make([]byte, 0, 32)
	if s.on&(1<<inverse) != 0 {
		fg, bg = bg, fg
		if fg == 0 && bg == 0 {
			out = append(out, " inv"...)
		}
	}
	if fg > 0 {
		out = strconv.AppendInt(append(out, " f"...), int64(fg-1), 10)
	}
	if bg > 0 {
		out = strconv.AppendInt(append(out, " b"...), int64(bg-1), 10)
	}
	for _, a := range [...]struct {
		n    int
		name string
	}{{bold, " bo"}, {dim, " di"}, {italic, " it"}, {underline, " un"}, {struck, " st"}} {
		if s.on&(1<<a.n) != 0 {
			out = append(out, a.name...)
		}
	}
	return strings.TrimPrefix(string(out), " ")
}

// overwrite carries out carriage returns and backspaces within one run of text.
func overwrite(s string) string {
	if !strings.ContainsAny(s, "\r\b") {
		return s
	}
	lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	for i, l := range lines {
		l = strings.TrimRight(l, "\r")
		if at := strings.LastIndexByte(l, '\r'); at >= 0 {
			l = l[at+1:]
		}
		lines[i] = rubOut(l)
	}
	return strings.Join(lines, "\n")
}

func rubOut(l string) string {
	if !strings.Contains(l, "\b") {
		return l
	}
	out := make([]byte, 0, len(l))
	for i := range len(l) {
		if l[i] != '\b' {
			out = append(out, l[i])
			continue
		}
		_, n := utf8.DecodeLastRune(out)
		out = out[:len(out)-n]
	}
	return string(out)
}
