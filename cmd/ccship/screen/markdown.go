package screen

import (
	"regexp"
	"strings"
	"sync"

	"github.com/ccship/ccship/cmd/ccship/term"
)

// writer makes lines of some columns.
type writer struct {
	painter
	columns int
	lines   []string
}

// add adds a painted line, in front of which is space.
func (w *writer) add(indent int, line string) {
	w.lines = append(w.lines, strings.Repeat(" ", indent)+line)
}

// markdown writes a text of Markdown. Tables and code stay as they are written, and are cut where the screen ends.
func (w *writer) markdown(indent int, text string) {
	fence, language := "", ""
	w.bold, w.code = false, false
	for line := range strings.SplitSeq(clean(strings.TrimSpace(text)), "\n") {
		body := strings.TrimLeft(line, " ")
		if mark := fenceOf(body); mark != "" && (fence == "" || strings.HasPrefix(mark, fence)) {
			if fence == "" {
				fence, language = mark, strings.TrimSpace(strings.TrimLeft(body, mark[:1]))
			} else {
				fence = ""
			}
			continue
		}
		switch {
		case fence != "":
			w.codeLine(indent+2, line, language)
		case body == "":
			w.bold, w.code = false, false
			w.lines = append(w.lines, "")
		case body[0] == '|':
			w.add(indent, w.line(plain, cut(line, w.columns-indent)))
		default:
			w.block(indent+min(len(line)-len(body), 8), body)
		}
	}
}

// fenceOf returns the mark that begins or ends a block of code; "" for other lines.
func fenceOf(line string) string {
	for _, c := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, c)); n >= 3 {
			return line[:n]
		}
	}
	return ""
}

// codeLine writes a line of code; of a diff, in the colour of what it does.
func (w *writer) codeLine(indent int, line, language string) {
	style := code
	if language == "diff" {
		switch {
		case strings.HasPrefix(line, "+"):
			style = added
		case strings.HasPrefix(line, "-"):
			style = removed
		default:
			style = plain
		}
	}
	w.add(indent, w.line(style, cut(line, w.columns-indent)))
}

// item is the beginning of an item of a list. Other commands do not compile it.
var item = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:[-*+]|\d{1,3}[.)])\s+`) })

// block writes a line that is no code: a heading, an item, a quotation, or words.
func (w *writer) block(indent int, line string) {
	style, first, rest := plain, "", line
	switch {
	case strings.HasPrefix(line, "#"):
		if heading := strings.TrimLeft(line, "#"); strings.HasPrefix(heading, " ") {
			style, rest = bold, strings.TrimSpace(heading)
		}
	case strings.HasPrefix(line, ">"):
		style, first, rest = faint, "│ ", strings.TrimSpace(line[1:])
	case strings.Trim(line, "-") == "" || strings.Trim(line, "*") == "" && len(line) > 2:
		rest = strings.Repeat("─", max(1, min(20, w.columns-indent)))
	default:
		if mark := item().FindString(line); mark != "" {
			first, rest = mark, line[len(mark):]
			if strings.ContainsAny(mark[:1], "-*+") {
				first = "• "
			}
			if task, found := strings.CutPrefix(rest, "[ ] "); found {
				rest = "☐ " + task
			} else if task, found := strings.CutPrefix(rest, "[x] "); found {
				rest = "☑ " + task
			}
		}
	}
	hang := term.Width(first)
	for i, part := range wrapped(rest, w.columns-indent-hang) {
		if i > 0 && first != "│ " {
			first = strings.Repeat(" ", hang)
		}
		w.add(indent, first+w.inline(style, part))
	}
}
