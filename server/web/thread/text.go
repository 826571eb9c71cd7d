package thread

import (
	"html/template"

	"github.com/ccship/ccship/server/web/page"
)

// limit returns how much of a text is shown now, in bytes.
func (b *Builder) limit() int {
	switch {
	case b.Full:
		return FullText
	case b.left <= 0:
		return fewText
	}
	return textLimit
}

// shown is as much of a text as there is space for, and how many bytes are left out.
func (b *Builder) shown(s string) (string, int64) {
	head, rest := page.Cut(s, b.limit())
	b.left -= len(head)
	b.cut = b.cut || rest > 0
	return head, rest
}

// renderer makes HTML of a text, and says how many bytes of it are left out.
type renderer func(string) (template.HTML, int64)

// part returns a text as far as there is space for it.
func (b *Builder) part(kind, s string, render renderer) Part {
	if !b.budget.Piece() {
		b.cut = true
		return Part{Kind: kind, More: int64(len(s))}
	}
	head, more := b.shown(s)
	html, left := render(head)
	b.cut = b.cut || left > 0
	return Part{Kind: kind, HTML: html, More: more + left}
}

func (b *Builder) markdown(s string) Part { return b.part("md", s, b.budget.Markdown) }

func (b *Builder) plain(s string) Part { return b.part("text", s, b.budget.Text) }

func (b *Builder) terminal(s string) Part { return b.part("text", s, b.budget.ANSI) }

func (b *Builder) code(s, language string) Part {
	return b.part("code", s, func(s string) (template.HTML, int64) { return b.budget.Code(s, language) })
}

// maxLink is the longest address that is linked to, in bytes.
const maxLink = 4 << 10

// short returns the beginning of a name or heading.
func short(s string) string {
	head, _ := page.Cut(s, 4*maxWords)
	return page.Short(head, maxWords)
}

// trim shortens what templates write of parts, and takes the space for it.
func (b *Builder) trim(parts []Part) {
	for i := range parts {
		p := &parts[i]
		p.Title = short(p.Title)
		if len(p.Link) > maxLink {
			p.Link = ""
		}
		b.budget.Piece(p.Title, p.Link)
		if p.Image != nil {
			p.Image.Kind = short(p.Image.Kind)
		}
		b.trim(p.Parts)
		if p.Tool != nil {
			b.trim(p.Tool.Input)
			b.trim(p.Tool.Result)
		}
	}
}
