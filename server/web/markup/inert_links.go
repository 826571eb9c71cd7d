package markup

import (
	"bytes"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/util"
)

// What is written instead of, or before, what would begin a link.
const (
	backslash = `\`
	entity    = "&lt;"
)

// escapeLinks escapes what would make a link that may not be followed, or a picture, which a renderer would fetch. Code
// stays as it is. It returns false when there is nothing to escape.
func escapeLinks(s string, doc ast.Node, context parser.Context, source []byte) (string, bool) {
	code := codeIn(doc, len(source))
	escapes := map[int]string{}   // by position in s: what is inserted there
	var angles []string           // links in angle brackets
	all := badReference(context)  // a definition says no position, and other texts may use it
	escape := func(at int) bool { // a bracket that is not in code
		if at < 0 || at >= len(s) || code[at] || s[at] != '[' {
			return false
		}
		escapes[at] = backslash
		return true
	}
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the walker returns no error
		if !entering {
			return ast.WalkContinue, nil
		}
		switch x := n.(type) {
		case *ast.Link:
			all = all || !followed(x.Destination) && !escape(bracketOf(x, source))
		case *ast.AutoLink:
			if x.AutoLinkType != ast.AutoLinkEmail && !followed(x.URL(source)) {
				angles = append(angles, "<"+string(x.Label(source))+">")
			}
		}
		return ast.WalkContinue, nil
	})
	for i := range len(s) {
		switch {
		case code[i]:
		case all && s[i] == '[':
			escapes[i] = backslash
		case s[i] == '!' && i+1 < len(s) && s[i+1] == '[' && !escapedAt(s, i):
			escapes[i] = backslash // whatever it refers to, perhaps in another text
		case slices.ContainsFunc(angles, func(a string) bool { return strings.HasPrefix(s[i:], a) }):
			escapes[i] = entity
		}
	}
	out := insert(s, escapes)
	return out, out != s
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
	_ = ast.Walk(link, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering && first < 0 {
			first = t.Segment.Start
			return ast.WalkStop, nil
		}
		return ast.WalkContinue, nil
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
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
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
		return ast.WalkContinue, nil
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

// insert escapes what stands at some positions: an opening angle bracket becomes an entity, others get a backslash
// unless they have one.
func insert(s string, escapes map[int]string) string {
	var out strings.Builder
	for i := range len(s) {
		switch {
		case escapes[i] == entity:
			out.WriteString(entity)
			continue
		case escapes[i] == backslash && !escapedAt(s, i):
			out.WriteString(backslash)
		}
		out.WriteByte(s[i])
	}
	return out.String()
}
