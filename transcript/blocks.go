package transcript

import "strings"

// piece is a Block whose strings are not decoded.
type piece struct {
	kind                        BlockKind
	typ, text, id, name         []byte
	input, content, source, raw []byte
	failed                      bool
}

// appendPieces appends what a content, a string or an array of blocks, is made of. Plain text is one piece.
func appendPieces(dst []piece, content []byte) []piece {
	if len(content) > 0 && content[0] == '"' {
		return append(dst, piece{kind: TextBlock, text: contents(content), raw: content})
	}
	if len(content) == 0 || content[0] != '[' {
		return dst
	}
	w := walk{b: content}
	return w.appendPieces(dst)
}

// appendPieces is the same for the array at w.i; it ends behind it.
func (w *walk) appendPieces(dst []piece) []piece {
	start := w.enter()
	for w.gap(); w.i < len(w.b) && w.b[w.i] != ']'; w.gap() {
		if w.b[w.i] == '{' {
			dst = append(dst, piece{})
			dst[len(dst)-1].read(w)
			continue
		}
		value := w.take(w.i)
		if len(value) == 0 {
			break
		}
		if value[0] == '"' {
			dst = append(dst, piece{kind: TextBlock, text: contents(value), raw: value})
		}
	}
	w.leave(start)
	return dst
}

// read reads the block at w.i.
func (p *piece) read(w *walk) {
	var result, thinking []byte
	start := w.enter()
	for key, value, ok := w.member(); ok; key, value, ok = w.member() {
		switch string(key) {
		case "type":
			p.typ = contents(value)
		case "text":
			p.text = contents(value)
		case "thinking":
			thinking = contents(value)
		case "id":
			p.id = contents(value)
		case "tool_use_id":
			result = contents(value)
		case "name":
			p.name = contents(value)
		case "input":
			p.input = value
		case "content":
			p.content = value
		case "source":
			p.source = value
		case "is_error":
			p.failed = truth(value)
		}
	}
	w.leave(start)
	p.raw = w.b[start:w.i]
	switch p.kind = kindOf(p.typ); p.kind {
	case ThinkingBlock:
		p.text = thinking
	case ToolResultBlock:
		p.id = result
	}
}

func kindOf(typ []byte) BlockKind {
	switch string(typ) {
	case "text":
		return TextBlock
	case "thinking":
		return ThinkingBlock
	case "redacted_thinking":
		return RedactedThinkingBlock
	case "tool_use", "server_tool_use", "mcp_tool_use":
		return ToolUseBlock
	case "image":
		return ImageBlock
	case "document":
		return DocumentBlock
	}
	if strings.HasSuffix(string(typ), "tool_result") {
		return ToolResultBlock
	}
	return OtherBlock
}

// Blocks decodes the content. Plain text is one TextBlock.
func (m *Message) Blocks() []Block { return blocksOf(m.pieces, 0) }

// maxNesting is how deep tool results are decoded within tool results.
const maxNesting = 3

func blocksOf(pieces []piece, depth int) []Block {
	var out []Block
	for _, p := range pieces {
		b := Block{
			Kind: p.kind, Type: Unquote(p.typ), Text: Unquote(p.text), ToolID: Unquote(p.id), ToolName: Unquote(p.name),
			Input: p.input, Error: p.failed, Raw: p.raw,
		}
		if b.Type == "" && b.Kind == TextBlock {
			b.Type = "text"
		}
		if p.source != nil {
			b.MediaType = text(field(p.source, "media_type"))
			b.Data = contents(field(p.source, "data"))
			b.URL = text(field(p.source, "url"))
		}
		if p.kind == ToolResultBlock && depth < maxNesting {
			b.Content = blocksOf(appendPieces(nil, p.content), depth+1)
		}
		out = append(out, b)
	}
	return out
}

// Text is the text blocks joined with newlines.
func (m *Message) Text() string { return joined(m.pieces) }

func joined(pieces []piece) string {
	var all []string
	for i := range pieces {
		if p := &pieces[i]; p.kind == TextBlock {
			all = append(all, Unquote(p.text))
		}
	}
	return strings.Join(all, "\n")
}

// Output is the text of a tool result's content, joined with newlines.
func (b Block) Output() string {
	var all []string
	for _, c := range b.Content {
		if c.Kind == TextBlock {
			all = append(all, c.Text)
		}
	}
	return strings.Join(all, "\n")
}

// output is Output cut at limit characters; pictures are named.
func (p *piece) output(limit int) string {
	if c := contents(p.content); c != nil {
		return cutRaw(c, limit)
	}
	inner := appendPieces(nil, p.content)
	if len(inner) == 1 && inner[0].kind == TextBlock {
		return cutRaw(inner[0].text, limit)
	}
	var all []string
	for _, q := range inner {
		switch q.kind {
		case TextBlock:
			all = append(all, Unquote(q.text))
		case ImageBlock:
			all = append(all, "[image]")
		case DocumentBlock:
			all = append(all, "[document]")
		}
	}
	return Cut(strings.Join(all, "\n"), limit)
}
