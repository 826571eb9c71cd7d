// Package markup turns the text of conversations into HTML that can do nothing: Markdown, source code, terminal output,
// differences. Whatever the text is, what comes out has no script, no handler, no style, no address but http, https and
// mailto links, and nothing that a browser would fetch by itself.
//
// It knows neither records nor pages. Colours are classes; the style sheet gives them their meaning.
package markup

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

const (
	// inertTries bounds how often a text is read again after its HTML was escaped, which may uncover more.
	inertTries = 8
	// probe is a paragraph that shows whether a text leaves something open.
	probe = "probeofwhatisopen"
)

// commonMark reads what is written for any reader, not only for the viewer.
var commonMark = goldmark.New()

// Inert returns Markdown that shows the same, with raw HTML escaped so that no renderer uses it, without links other
// than those to http, https and mailto addresses, without pictures, which a renderer would fetch, and with code blocks
// closed, so that what follows is read as it stands. Code stays as it is. It returns false for a text that it cannot
// make inert in a few steps, that is too long or too deeply nested, or takes more than the page has.
func (p *Budget) Inert(s string) (string, bool) {
	if len(s) > maxMarkdown || nested(s) {
		return "", false
	}
	// A NUL and a lone CR mean different things to different renderers.
	s = strings.NewReplacer("\x00", "\ufffd", "\r\n", "\n", "\r", "\n").Replace(strings.ToValidUTF8(s, "\ufffd"))
	for range inertTries {
		if !p.parse(s) {
			return "", false
		}
		source := []byte(s + "\n\n" + probe + "\n")
		context := parser.NewContext()
		doc := commonMark.Parser().Parse(text.NewReader(source), parser.WithContext(context))
		marks := make([]byte, len(s))
		if !markHTML(doc, source, marks) {
			markLinks(s, doc, context, source, marks)
		}
		if without := insert(s, marks); without != s {
			s = without
			continue
		}
		if closed(doc, source) {
			return s, true
		}
		s = closeFence(s)
	}
	return "", false
}

// closed says whether the probe is a paragraph of its own.
func closed(doc ast.Node, source []byte) bool {
	last, ok := doc.LastChild().(*ast.Paragraph)
	return ok && string(bytes.TrimSpace(last.Lines().Value(source))) == probe
}

// closeFence ends an open code block, whichever of the two kinds it is.
func closeFence(s string) string {
	for _, mark := range []string{"`", "~"} {
		n := 3
		for run := n; strings.Contains(s, strings.Repeat(mark, run)); run++ {
			n = run
		}
		with := s + "\n" + strings.Repeat(mark, n)
		source := []byte(with + "\n\n" + probe + "\n")
		if closed(commonMark.Parser().Parse(text.NewReader(source)), source) {
			return with
		}
	}
	return s
}

// each visits the nodes of a document.
func each(doc ast.Node, visit func(ast.Node)) {
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the walker returns no error
		if entering {
			visit(n)
		}
		return ast.WalkContinue, nil
	})
}

// markHTML marks where raw HTML of a document may begin a tag, and reports whether it has any.
func markHTML(doc ast.Node, source, marks []byte) (found bool) {
	mark := func(segments ...text.Segment) {
		for _, x := range segments {
			for i := x.Start; i < min(x.Stop, len(marks)); i++ {
				if source[i] == '<' {
					marks[i], found = entity, true
				}
			}
		}
	}
	each(doc, func(n ast.Node) {
		switch x := n.(type) {
		case *ast.HTMLBlock:
			mark(x.Lines().Sliced(0, x.Lines().Len())...)
			if x.HasClosure() {
				mark(x.ClosureLine)
			}
		case *ast.RawHTML:
			mark(x.Segments.Sliced(0, x.Segments.Len())...)
		}
	})
	return found
}

// What is written: an entity instead of an opening angle bracket, or a backslash before what would begin a link.
const (
	entity    = '<'
	backslash = '\\'
)

// markLinks marks what would make a link that may not be followed, or a picture, which a renderer would fetch. Code
// stays as it is.
func markLinks(s string, doc ast.Node, context parser.Context, source, marks []byte) {
	code := codeIn(doc, len(source))
	var angles []string           // links in angle brackets
	all := badReference(context)  // a definition says no position, and other texts may use it
	escape := func(at int) bool { // a bracket that is not in code
		if at < 0 || at >= len(s) || code[at] || s[at] != '[' {
			return false
		}
		marks[at] = backslash
		return true
	}
	each(doc, func(n ast.Node) {
		switch x := n.(type) {
		case *ast.Link:
			all = all || !followed(x.Destination) && !escape(bracketOf(x, source))
		case *ast.AutoLink:
			if x.AutoLinkType != ast.AutoLinkEmail && !followed(x.URL(source)) {
				angles = append(angles, "<"+string(x.Label(source))+">")
			}
		}
	})
	for i := range len(s) {
		switch {
		case code[i]:
		case all && s[i] == '[':
			marks[i] = backslash
		case s[i] == '!' && i+1 < len(s) && s[i+1] == '[' && !escapedAt(s, i):
			marks[i] = backslash // whatever it refers to, perhaps in another text
		case slices.ContainsFunc(angles, func(a string) bool { return strings.HasPrefix(s[i:], a) }):
			marks[i] = entity
		}
	}
}

// followed reports whether an exported link may stay one.
func followed(destination []byte) bool {
	// As a renderer writes it, with entities and escapes resolved.
	to := bytes.ToLower(util.URLEscape(destination, true))
	for _, scheme := range []string{"http://", "https://", "mailto:"} {
		if bytes.HasPrefix(to, []byte(scheme)) {
			return true
		}
	}
	return false
}

// badReference reports whether a definition like "[name]: address" has an address that may not be followed.
func badReference(context parser.Context) bool {
	return slices.ContainsFunc(context.References(), func(r parser.Reference) bool { return !followed(r.Destination()) })
}

// bracketOf returns where a link's bracket opens; -1 when its text does not show that.
func bracketOf(link ast.Node, source []byte) int {
	first := -1
	each(link, func(n ast.Node) {
		if t, ok := n.(*ast.Text); ok && first < 0 {
			first = t.Segment.Start
		}
	})
	if first < 0 {
		return -1
	}
	return bytes.LastIndexByte(source[:first], '[')
}

// codeIn marks the bytes of code.
func codeIn(doc ast.Node, size int) []bool {
	code := make([]bool, size)
	mark := func(from, to int) {
		for i := from; i < min(to, size); i++ {
			code[i] = true
		}
	}
	each(doc, func(n ast.Node) {
		switch n.(type) {
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			for _, x := range n.Lines().Sliced(0, n.Lines().Len()) {
				mark(x.Start, x.Stop)
			}
		case *ast.CodeSpan:
			for c := n.FirstChild(); c != nil; c = c.NextSibling() {
				if t, ok := c.(*ast.Text); ok {
					mark(t.Segment.Start, t.Segment.Stop)
				}
			}
		}
	})
	return code
}

// escapedAt reports whether an odd number of backslashes stands before a position.
func escapedAt(s string, at int) bool {
	n := 0
	for at-n > 0 && s[at-n-1] == '\\' {
		n++
	}
	return n%2 == 1
}

// insert escapes what is marked. What has a backslash gets no other.
func insert(s string, marks []byte) string {
	var out strings.Builder
	for i := range len(s) {
		switch {
		case marks[i] == entity:
			out.WriteString("&lt;")
			continue
		case marks[i] == backslash && !escapedAt(s, i):
			out.WriteByte(backslash)
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

// wideEscape returns what stands for the character that s begins with, "" if it stands for itself, and its length.
func wideEscape(s string) (seen string, n int) {
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case r == utf8.RuneError && n == 1:
		return string(utf8.RuneError), n
	case turns(r) || r >= 0x80 && r < 0xa0:
		return fmt.Sprintf(`<span class="ctl">U+%04X</span>`, r), n
	}
	return "", n
}

// asciiEscape returns what stands for a character that can't stand for itself, else "".
func asciiEscape(c byte) string {
	switch {
	case c == '&':
		return "&amp;"
	case c == '<':
		return "&lt;"
	case c == '>':
		return "&gt;"
	case c == '"':
		return "&#34;"
	case c == '\'':
		return "&#39;"
	case c == '\n' || c == '\t':
		return ""
	case c == '\r':
		return " "
	case c < 0x20:
		return `<span class="ctl">` + string(rune(0x2400+int(c))) + `</span>`
	case c == 0x7f:
		return `<span class="ctl">␡</span>`
	}
	return ""
}

// turns says whether r changes the direction of the text around it.
func turns(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0x061c
}
