package markup

import (
	"crypto/sha256"
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

// Code is source text with its tokens in spans. language is a name as it stands behind ``` in Markdown, or a name of a
// file; one that is not known leaves the text plain, as does a page that has coloured enough. left is how many bytes
// are left out.
func (p *Budget) Code(text, language string) (html template.HTML, left int64) {
	lexer := lexerOf(language)
	head := text
	if limit := min(maxCode, p.code); len(text) > limit {
		head = text[:strings.LastIndexByte(text[:max(limit, 0)], '\n')+1] // whole lines
		if len(head) < leastCode {
			head = ""
		}
	}
	if lexer == nil || head == "" || p.patience <= 0 {
		return p.Text(text)
	}
	p.code -= len(head)
	key := cacheKey(head, language)
	code, have := p.Cache.get(key)
	if have && len(code) <= p.html {
		p.html -= len(code)
	} else {
		var all bool
		var n int
		if code, n, all = p.colour(lexer, head); all {
			p.Cache.put(key, code)
		}
		if n < len(head) {
			return code, int64(len(text) - n)
		}
	}
	if len(head) == len(text) {
		return code, 0
	}
	rest, left := p.Text(text[len(head):])
	return code + rest, left
}

// colour puts the tokens of code in spans, as far as there is space: n bytes of it. all: it had the time to colour all.
func (p *Budget) colour(lexer chroma.Lexer, head string) (code template.HTML, n int, all bool) {
	began := time.Now()
	defer func() { p.patience -= time.Since(began) }()
	tokens, err := lexer.Tokenise(&chroma.TokeniseOptions{State: "root"}, head)
	if err != nil {
		html, left := p.Text(head)
		return html, len(head) - int(left), left == 0
	}
	o := p.open(2 * len(head))
	done, next := 0, 0 // written, and read by the lexer
	class := ""
	until := began.Add(min(codePatience, p.patience))
	for ; time.Now().Before(until) && !o.full && p.tokens > 0; p.tokens-- {
		t := tokens()
		if t == chroma.EOF || !strings.HasPrefix(head[next:], t.Value) {
			all = true
			break // the end, or a lexer that changes the text
		}
		if c := tokenClass(t.Type); c != class {
			done += o.span(class, head[done:next])
			class = c
		}
		next += len(t.Value)
	}
	if done += o.span(class, head[done:next]); !o.full {
		done += o.text(head[done:])
	}
	return p.close(o), done, all && !o.full
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
			return x
		}
	}
	return nil
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

// cacheBytes limits what a Cache keeps.
const cacheBytes = 8 << 20

// Cache keeps coloured code, so that a page that is read again costs less: colouring is most of what a page takes. It
// drops everything once it is full. For concurrent use; the zero Cache is empty.
type Cache struct {
	mu    sync.Mutex
	code  map[[32]byte]template.HTML // guarded by mu
	bytes int                        // guarded by mu
}

func cacheKey(text, language string) [32]byte {
	h := sha256.New()
	_, _ = h.Write([]byte(language)) // a hash takes everything
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(text))
	return [32]byte(h.Sum(nil))
}

func (c *Cache) get(key [32]byte) (code template.HTML, ok bool) {
	if c == nil {
		return "", false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	code, ok = c.code[key]
	return code, ok
}

func (c *Cache) put(key [32]byte, code template.HTML) {
	if c == nil || len(code) > cacheBytes/8 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.code == nil || c.bytes+len(code) > cacheBytes {
		c.code, c.bytes = map[[32]byte]template.HTML{}, 0
	}
	if _, have := c.code[key]; !have {
		c.code[key] = code
		c.bytes += len(code) + len(key)
	}
}
