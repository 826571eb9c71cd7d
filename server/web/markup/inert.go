package markup

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
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
