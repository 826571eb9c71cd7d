package markup

import (
	"bytes"
	"html/template"
	"regexp"
	"strings"

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
// nothing. Too long or too deeply nested text is shown as it is.
func (p *Highlighter) Markdown(s string) template.HTML {
	if len(s) > maxMarkdown || nested(s) {
		return plain(s)
	}
	source := []byte(strings.ToValidUTF8(s, "\ufffd"))
	doc := dialect.Parser().Parse(text.NewReader(source))
	doc.SetAttributeString(highlighterKey, p)
	var b bytes.Buffer
	if err := dialect.Renderer().Render(&b, source, doc); err != nil {
		return plain(s)
	}
	return template.HTML(policy.SanitizeBytes(b.Bytes())) //nolint:gosec // sanitised
}

// A <pre> may scroll, so the keyboard must reach it, and it says what it is.
const (
	plainOpen = `<pre class="plain" tabindex="0" role="group" aria-label="Text">`
	codeOpen  = `<pre class="code" tabindex="0" role="group" aria-label="Code">`
)

func plain(s string) template.HTML { return plainOpen + Text(s) + `</pre>` }

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

// newPolicy is what may come out, whatever the renderer does.
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

// highlighterKey is the attribute of a document that has the page's highlighter. It is not rendered.
const highlighterKey = "highlighter"

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
	highlighter := &Highlighter{}
	if x, ok := n.OwnerDocument().AttributeString(highlighterKey); ok {
		highlighter, _ = x.(*Highlighter)
	}
	_, err := w.WriteString(codeOpen + `<code>` + string(highlighter.Code(blockText(n, source), language)) +
		"</code></pre>\n")
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
	_, err := w.WriteString(string(plain(strings.TrimSuffix(html, "\n"))) + "\n")
	return ast.WalkSkipChildren, err
}

func blockText(n ast.Node, source []byte) string {
	var b strings.Builder
	lines := n.Lines()
	for i := range lines.Len() {
		line := lines.At(i)
		b.Write(line.Value(source))
	}
	return b.String()
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
		if _, err := w.WriteString(string(Text(string(segment.Value(source))))); err != nil {
			return ast.WalkStop, err
		}
	}
	return ast.WalkSkipChildren, nil
}

// image is a link to the picture; its text is the picture's.
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
