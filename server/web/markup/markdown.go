package markup

import (
	"errors"
	"html/template"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

const (
	// maxMarkdown is the longest text that is read as Markdown, in bytes.
	maxMarkdown = 128 << 10
	// maxNesting is how many marks of quotes and brackets a line may have: parsers become slow with depth.
	maxNesting = 200
)

// Markdown renders GitHub's dialect. HTML in it is shown, not used; pictures become links, for a browser must fetch
// nothing. Text that is too long or too deeply nested, or takes more than the page has, is shown as it is. left is how
// many bytes are left out.
func (p *Budget) Markdown(s string) (html template.HTML, left int64) {
	if len(s) > maxMarkdown || nested(s) || !p.parse(s) {
		return p.plain(s)
	}
	source := []byte(strings.ToValidUTF8(s, "\ufffd"))
	doc := dialect.Parser().Parse(text.NewReader(source))
	doc.SetAttributeString(budgetKey, p)
	room := p.html // code inside takes of it, and is counted as a part of all
	b := bounded{room: room / 2}
	err := dialect.Renderer().Render(&b, source, doc)
	if p.html = room; err != nil {
		return p.plain(s)
	}
	clean := policy.SanitizeBytes(b.html)
	if p.html -= len(clean); p.html < 0 {
		p.html = room
		return p.plain(s)
	}
	return template.HTML(clean), 0 //nolint:gosec // sanitised
}

// parse takes the space for parsing a text as Markdown.
func (p *Budget) parse(s string) bool {
	marks := 0
	for i := range len(s) {
		if c := s[i]; c < '0' && c != ' ' || c > '9' && c < 'A' || c > 'Z' && c < 'a' || c > 'z' && c < utf8.RuneSelf {
			marks++
		}
	}
	if marks += 2 * cells(s); marks > p.marks {
		return false
	}
	p.marks -= marks
	return true
}

// cells is about how many cells the tables of a text have: a row that lacks some gets as many as the first.
func cells(s string) (n int) {
	columns := 0
	for line := range strings.SplitSeq(s, "\n") {
		switch {
		case strings.Trim(line, " \t\r>") == "":
			columns = 0
		case strings.Contains(line, "-") && strings.Trim(line, " \t\r>|:-+*.)0123456789") == "":
			columns = max(columns, strings.Count(line, "|")+1)
		}
		n += columns
	}
	return n
}

// bounded takes no more than it has space for.
type bounded struct {
	html []byte
	room int
}

var errFull = errors.New("no room for more")

func (b *bounded) Write(p []byte) (int, error) {
	if b.room -= len(p); b.room < 0 {
		return 0, errFull
	}
	b.html = append(b.html, p...)
	return len(p), nil
}

// A <pre> may scroll, so the keyboard must reach it, and it says what it is.
const (
	plainOpen = `<pre class="plain" tabindex="0" role="group" aria-label="Text">`
	codeOpen  = `<pre class="code" tabindex="0" role="group" aria-label="Code">`
)

func (p *Budget) plain(s string) (template.HTML, int64) {
	html, left := p.Text(s)
	return plainOpen + html + `</pre>`, left
}

// nested says whether a line opens more than any writer would.
func nested(s string) bool {
	for line := range strings.SplitSeq(s, "\n") {
		if len(line) > maxNesting && (strings.Count(line, ">") > maxNesting || strings.Count(line, "[") > maxNesting ||
			strings.Count(line, "*") > 5*maxNesting || strings.Count(line, "_") > 5*maxNesting ||
			strings.Count(line, "`") > 5*maxNesting || strings.Count(line, "- ") > maxNesting) {
			return true
		}
	}
	return false
}

// dialect and policy are immutable once made.
var (
	dialect = goldmark.New(
		goldmark.WithExtensions(extension.Linkify, extension.Strikethrough, extension.TaskList,
			// The page's policy allows no style attributes.
			extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(nodes{}, 100))),
	)
	policy = newPolicy()
)

// newPolicy returns what may come out, whatever the renderer does.
func newPolicy() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "ul", "ol", "li", "strong", "em",
		"del", "code", "pre", "table", "thead", "tbody", "tr", "th", "td", "span", "div")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https", "mailto")
	p.RequireParseableURLs(true)
	p.AllowRelativeURLs(false)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^[a-z]{1,8}$`)).OnElements("span", "pre", "div", "a")
	p.AllowAttrs("tabindex").Matching(regexp.MustCompile(`^0$`)).OnElements("pre")
	p.AllowAttrs("role").Matching(regexp.MustCompile(`^group$`)).OnElements("pre")
	p.AllowAttrs("aria-label").Matching(regexp.MustCompile(`^(Code|Text)$`)).OnElements("pre")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|right|center)$`)).OnElements("th", "td")
	p.AllowAttrs("start").Matching(regexp.MustCompile(`^[0-9]{1,9}$`)).OnElements("ol")
	p.AllowAttrs("type").Matching(regexp.MustCompile(`^checkbox$`)).OnElements("input")
	p.AllowAttrs("checked", "disabled").Matching(regexp.MustCompile(`^$`)).OnElements("input")
	return p
}

// budgetKey is the attribute of a document that has the page's budget. It is not rendered.
const budgetKey = "budget"

// budgetOf returns the page's budget.
func budgetOf(n ast.Node) *Budget {
	x, _ := n.OwnerDocument().AttributeString(budgetKey)
	if p, ok := x.(*Budget); ok {
		return p
	}
	return &Budget{} // nothing is left
}

// nodes renders what the page has its own way for.
type nodes struct{}

func (nodes) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, codeBlock)
	r.Register(ast.KindCodeBlock, codeBlock)
	r.Register(ast.KindHTMLBlock, htmlBlock)
	r.Register(ast.KindRawHTML, rawHTML)
	r.Register(ast.KindImage, image)
}

func codeBlock(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	language := ""
	if f, ok := n.(*ast.FencedCodeBlock); ok {
		language = string(f.Language(source))
	}
	code, _ := budgetOf(n).Code(blockText(n, source), language) // what is too much, Markdown finds
	_, err := w.WriteString(codeOpen + `<code>` + string(code) + "</code></pre>\n")
	return ast.WalkSkipChildren, err
}

func htmlBlock(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	html := blockText(n, source)
	if h, ok := n.(*ast.HTMLBlock); ok && h.HasClosure() {
		html += string(h.ClosureLine.Value(source))
	}
	shown, _ := budgetOf(n).plain(strings.TrimSuffix(html, "\n"))
	_, err := w.WriteString(string(shown) + "\n")
	return ast.WalkSkipChildren, err
}

func blockText(n ast.Node, source []byte) string {
	return string(n.Lines().Value(source))
}

func rawHTML(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkSkipChildren, nil
	}
	raw, ok := n.(*ast.RawHTML)
	if !ok {
		return ast.WalkSkipChildren, nil
	}
	for i := range raw.Segments.Len() {
		segment := raw.Segments.At(i)
		html, _ := budgetOf(n).Text(string(segment.Value(source)))
		if _, err := w.WriteString(string(html)); err != nil {
			return ast.WalkStop, err
		}
	}
	return ast.WalkSkipChildren, nil
}

// image returns a link to the picture; its text is the picture's.
func image(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		_, err := w.WriteString("</a>")
		return ast.WalkContinue, err
	}
	img, ok := n.(*ast.Image)
	if !ok {
		return ast.WalkSkipChildren, nil
	}
	_, err := w.WriteString(`<a class="picture" href="` + template.HTMLEscapeString(string(img.Destination)) + `">`)
	return ast.WalkContinue, err
}
