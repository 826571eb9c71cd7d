// Package cast keeps what a terminal showed, and when: as text, and as an animated picture in SVG. It knows what
// terminals do with text and nothing of the programs that write it.
package cast

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Event is text that a program wrote to the terminal.
type Event struct {
	At   time.Duration
	Text string
}

// Recording is what a terminal of a size was given to show.
type Recording struct {
	Columns, Rows int
	Events        []Event
}

// Text is every line that was shown, as it was in the end.
func (r Recording) Text() string {
	s := &screen{columns: r.Columns}
	for _, e := range r.Events {
		s.write(e.Text)
	}
	var b strings.Builder
	for _, line := range s.lines {
		b.WriteString(strings.TrimRight(line.text(), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// cell is one character with its look.
type cell struct {
	r     rune
	style string // classes of the picture
}

type line []cell

func (l line) text() string {
	var b strings.Builder
	for _, c := range l {
		b.WriteRune(c.r)
	}
	return b.String()
}

// screen is a terminal without an upper end: what scrolls out is kept.
type screen struct {
	columns     int
	lines       []line
	row, column int
	style       string
	cleared     int // rows above the last clearing of the screen
	nowrap      bool
	rest        string // the beginning of a sequence
}

// write does what a terminal does with a text.
func (s *screen) write(text string) {
	text = s.rest + text
	s.rest = ""
	for text != "" {
		switch {
		case strings.HasPrefix(text, "\x1b["):
			end := strings.IndexFunc(text[2:], func(r rune) bool { return r >= '@' && r <= '~' })
			if end < 0 {
				s.rest = text
				return
			}
			s.escape(text[2:2+end], text[2+end])
			text = text[3+end:]
		case len(text) > 1 && text[0] == '\x1b': // saves the cursor, or gives it back
			text = text[2:]
		case text == "\x1b" || !utf8.FullRuneInString(text):
			s.rest = text
			return
		default:
			r, n := utf8.DecodeRuneInString(text)
			s.put(r)
			text = text[n:]
		}
	}
}

// put shows one character, or moves as a control character says.
func (s *screen) put(r rune) {
	switch r {
	case '\n':
		s.row++
	case '\r':
		s.column = 0
	case '\b':
		s.column = max(0, s.column-1)
	default:
		if r < ' ' {
			return
		}
		if s.column >= s.columns {
			if s.nowrap {
				return
			}
			s.row, s.column = s.row+1, 0
		}
		l := s.line()
		for len(*l) <= s.column {
			*l = append(*l, cell{r: ' '})
		}
		(*l)[s.column] = cell{r, s.style}
		s.column++
	}
}

// line is the one where the cursor is.
func (s *screen) line() *line {
	for len(s.lines) <= s.row {
		s.lines = append(s.lines, nil)
	}
	return &s.lines[s.row]
}

// escape does what a control sequence says, of those that ccship and package managers use.
func (s *screen) escape(argument string, what byte) {
	n := 0
	for _, c := range strings.TrimLeft(argument, "?") {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + int(c-'0')
	}
	switch what {
	case 'A':
		s.row = max(s.cleared, s.row-max(1, n))
	case 'K':
		l := s.line()
		*l = (*l)[:min(len(*l), s.column)]
	case 'J':
		if n == 2 {
			s.cleared = len(s.lines)
			s.row = s.cleared
			return
		}
		l := s.line()
		*l = (*l)[:min(len(*l), s.column)]
		s.lines = s.lines[:s.row+1]
	case 'H':
		s.row, s.column = s.cleared, 0
	case 'm':
		s.paint(argument)
	case 'h', 'l':
		if n == 7 {
			s.nowrap = what == 'l'
		}
	}
}

// looks are the classes of the picture, by the numbers of terminals.
var looks = map[string]string{"1": "b", "2": "d", "31": "r", "32": "g", "33": "y", "36": "c"}

func (s *screen) paint(argument string) {
	for _, number := range strings.Split(argument, ";") {
		if class, ok := looks[number]; ok {
			s.style = strings.TrimSpace(s.style + " " + class)
			continue
		}
		s.style = ""
	}
}

// view is what is in sight in so many rows.
func (s *screen) view(rows int) []line {
	from := max(s.cleared, len(s.lines)-rows)
	return s.lines[min(from, len(s.lines)):]
}
