package markup

import (
	"encoding/json"
	"html/template"
	"strings"
)

// maxIndent is how deep values are indented. What is nested deeper stays on one line: indented, it would grow with the
// square of its depth.
const maxIndent = 32

// JSON returns a value indented and coloured, or the text as it is when it is none or is longer than limit bytes. left
// is how many bytes are left out.
func (p *Budget) JSON(raw []byte, limit int) (html template.HTML, left int64) {
	if len(raw) > limit || !json.Valid(raw) {
		text := string(raw[:min(len(raw), limit)])
		html, left = p.Text(text)
		return html, left + int64(len(raw)-len(text))
	}
	o := p.open(2 * len(raw))
	done := o.indent(string(raw))
	return p.close(o), int64(len(raw) - done)
}

// indent writes a valid value with its members on lines of their own, as far as there is space, and returns how much of
// it that is.
func (o *output) indent(s string) int {
	depth := 0
	line := func() { o.write("\n" + strings.Repeat("  ", depth)) }
	i := 0
	for i < len(s) && !o.full {
		switch c := s[i]; c {
		case ' ', '\t', '\r', '\n':
			i++
		case '{', '[':
			o.write(s[i : i+1])
			if i++; skipBlank(s, i) < len(s) && s[skipBlank(s, i)] == c+2 { // nothing is in it
				i = skipBlank(s, i) + 1
				o.write(string(rune(c + 2)))
			} else if depth++; depth <= maxIndent {
				line()
			}
		case '}', ']':
			if depth--; depth < maxIndent {
				line()
			}
			o.write(s[i : i+1])
			i++
		case ',':
			o.write(",")
			if i++; depth <= maxIndent {
				line()
			}
		case ':':
			o.write(": ")
			i++
		default:
			class, end := scalar(s, i)
			i += o.span(class, s[i:end])
		}
	}
	return i
}

// scalar returns the class and the end of the string, number or word that begins at i. A name has another class than a
// text.
func scalar(s string, i int) (class string, end int) {
	if s[i] != '"' {
		end = i + 1
		for end < len(s) && !strings.ContainsRune(" \t\r\n,]}", rune(s[end])) {
			end++
		}
		if strings.IndexByte("tfn", s[i]) >= 0 {
			return "tk", end
		}
		return "tn", end
	}
	for end = i + 1; s[end] != '"'; end++ {
		if s[end] == '\\' {
			end++
		}
	}
	if end++; skipBlank(s, end) < len(s) && s[skipBlank(s, end)] == ':' {
		return "tk", end
	}
	return "ts", end
}

func skipBlank(s string, i int) int {
	for i < len(s) && strings.IndexByte(" \t\r\n", s[i]) >= 0 {
		i++
	}
	return i
}
