package markup

import (
	"html/template"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

const (
	// maxCode is how much of one text is coloured, in bytes. What follows is plain.
	maxCode = 48 << 10
	// leastCode is how much of a longer text is worth colouring.
	leastCode = 1 << 10
	// codePatience is how long colouring one text may take; what is left is then plain. Some patterns of some
	// languages take very long on text made for it.
	codePatience = time.Second
)

// Highlighter colours code until it has coloured so many bytes or spent so much time; from then on code is plain. For
// one goroutine.
type Highlighter struct {
	Cache *Cache // nil: none

	bytes    int
	patience time.Duration
}

// NewHighlighter makes a highlighter for one page. patience bounds texts that are made to be slow; for others bytes
// is the limit.
func NewHighlighter(bytes int, patience time.Duration) *Highlighter {
	return &Highlighter{bytes: bytes, patience: patience}
}

// Code is source text with its tokens in spans. language is a name as it stands behind ``` in Markdown, or a name of a
// file; one that is not known leaves the text plain.
func (p *Highlighter) Code(text, language string) template.HTML {
	lexer := lexerOf(language)
	head := text
	if limit := min(maxCode, p.bytes); len(text) > limit {
		head = text[:strings.LastIndexByte(text[:max(limit, 0)], '\n')+1] // whole lines
		if len(head) < leastCode {
			head = ""
		}
	}
	if lexer == nil || head == "" || p.patience <= 0 {
		return Text(text)
	}
	p.bytes -= len(head)
	key := cacheKey(head, language)
	code, have := p.Cache.get(key)
	if !have {
		var whole bool
		if code, whole = p.colour(lexer, head); whole {
			p.Cache.put(key, code)
		}
	}
	if len(head) == len(text) {
		return code
	}
	return code + Text(text[len(head):])
}

// colour puts the tokens of code in spans. whole: it had the time to do so.
func (p *Highlighter) colour(lexer chroma.Lexer, head string) (code template.HTML, whole bool) {
	began := time.Now()
	defer func() { p.patience -= time.Since(began) }()
	tokens, err := lexer.Tokenise(&chroma.TokeniseOptions{State: "root"}, head)
	if err != nil {
		return Text(head), true
	}
	var b strings.Builder
	b.Grow(2 * len(head))
	done := 0
	for until := began.Add(min(codePatience, p.patience)); time.Now().Before(until); {
		t := tokens()
		if t == chroma.EOF || !strings.HasPrefix(head[done:], t.Value) {
			whole = true
			break // the end, or a lexer that changes the text
		}
		done += len(t.Value)
		writeToken(&b, t)
	}
	writeText(&b, head[done:])
	return template.HTML(b.String()), whole //nolint:gosec // escaped by writeText
}

// languages finds lexers by name and by file name. The library's own search matches hundreds of patterns for each.
type languages struct {
	names, files, endings map[string]chroma.Lexer // lower case; endings with their dot
}

// known is every language, read when the first code is coloured.
var known = sync.OnceValue(func() languages {
	l := languages{map[string]chroma.Lexer{}, map[string]chroma.Lexer{}, map[string]chroma.Lexer{}}
	for _, x := range lexers.GlobalLexerRegistry.Lexers {
		c := x.Config()
		for _, name := range append([]string{c.Name}, c.Aliases...) {
			keep(l.names, name, x)
		}
		for _, pattern := range append(append([]string{}, c.Filenames...), c.AliasFilenames...) {
			if ending, ok := strings.CutPrefix(pattern, "*."); ok && !strings.ContainsAny(ending, "*?[") {
				keep(l.endings, "."+ending, x)
			} else if !strings.ContainsAny(pattern, "*?[") {
				keep(l.files, pattern, x)
			}
		}
	}
	return l
})

// keep files a lexer under a name that several may claim: the one with the highest priority, then the first.
func keep(in map[string]chroma.Lexer, name string, x chroma.Lexer) {
	name = strings.ToLower(name)
	if y, taken := in[name]; !taken || x.Config().Priority > y.Config().Priority {
		in[name] = x
	}
}

// lexerOf finds a language by its name or that of a file; nil for plain text and what is not known.
func lexerOf(language string) chroma.Lexer {
	if language == "" || len(language) > 400 {
		return nil
	}
	l := known()
	file := strings.ToLower(path.Base(strings.ReplaceAll(language, `\`, "/")))
	for _, x := range []chroma.Lexer{l.names[strings.ToLower(language)], l.files[file], l.endings[path.Ext(file)]} {
		if x != nil && x.Config().Name != "plaintext" {
			return chroma.Coalesce(x)
		}
	}
	return nil
}

func writeToken(b *strings.Builder, t chroma.Token) {
	c := tokenClass(t.Type)
	if c == "" {
		writeText(b, t.Value)
		return
	}
	b.WriteString(`<span class="` + c + `">`)
	writeText(b, t.Value)
	b.WriteString("</span>")
}

// tokenClass reduces the many token types of lexers to a few classes, one for each colour.
func tokenClass(t chroma.TokenType) string {
	switch {
	case t == chroma.KeywordType || t == chroma.NameClass || t == chroma.NameNamespace:
		return "tt"
	case t.InCategory(chroma.Keyword) || t == chroma.OperatorWord || t == chroma.NameTag:
		return "tk"
	case t.InSubCategory(chroma.LiteralString):
		return "ts"
	case t.InSubCategory(chroma.LiteralNumber) || t == chroma.NameConstant:
		return "tn"
	case t.InCategory(chroma.Comment):
		return "tc"
	case t == chroma.NameFunction || t == chroma.NameDecorator || t == chroma.NameBuiltin || t == chroma.NameAttribute:
		return "tf"
	case t == chroma.GenericDeleted:
		return "td"
	case t == chroma.GenericInserted:
		return "ta"
	case t == chroma.GenericHeading || t == chroma.GenericSubheading:
		return "th"
	}
	return ""
}
