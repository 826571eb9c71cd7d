package markup

import (
	"bytes"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/util"
)

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
