package transcript

import "strings"

// RawBlock is a Block whose strings are not decoded: what CutEscaped and Unquote take. Its slices point into the line.
type RawBlock struct {
	Kind                        BlockKind
	Type, Text, ID, Name        []byte
	Input, Content, Source, Raw []byte
	Failed                      bool
}

// appendPieces appends what a content, a string or an array of blocks, is made of. Plain text is one piece.
func appendPieces(dst []RawBlock, content []byte) []RawBlock {
	if len(content) > 0 && content[0] == '"' {
		return append(dst, RawBlock{Kind: TextBlock, Text: contents(content), Raw: content})
	}
	if len(content) == 0 || content[0] != '[' {
		return dst
	}
	w := walk{b: content}
	return w.appendPieces(dst)
}

// appendPieces is the same for the array at w.i; it ends behind it.
func (w *walk) appendPieces(dst []RawBlock) []RawBlock {
	start := w.enter()
	for w.gap(); w.i < len(w.b) && w.b[w.i] != ']'; w.gap() {
		if w.b[w.i] == '{' {
			dst = append(dst, RawBlock{})
			dst[len(dst)-1].read(w)
			continue
		}
		value := w.take(w.i)
		if len(value) == 0 {
			break
		}
		if value[0] == '"' {
			dst = append(dst, RawBlock{Kind: TextBlock, Text: contents(value), Raw: value})
		}
	}
	w.leave(start)
	return dst
}

// read reads the block at w.i.
func (p *RawBlock) read(w *walk) {
	var result, thinking []byte
	start := w.enter()
	for key, value, ok := w.member(); ok; key, value, ok = w.member() {
		switch string(key) {
		case "type":
			p.Type = contents(value)
		case "text":
			p.Text = contents(value)
		case "thinking":
			thinking = contents(value)
		case "id":
			p.ID = contents(value)
		case "tool_use_id":
			result = contents(value)
		case "name":
			p.Name = contents(value)
		case "input":
			p.Input = value
		case "content":
			p.Content = value
		case "source":
			p.Source = value
		case "is_error":
			p.Failed = truth(value)
		}
	}
	w.leave(start)
	p.Raw = w.b[start:w.i]
	switch p.Kind = kindOf(p.Type); p.Kind {
	case ThinkingBlock:
		p.Text = thinking
	case ToolResultBlock:
		p.ID = result
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

func blocksOf(pieces []RawBlock, depth int) []Block {
	var out []Block
	for _, p := range pieces {
		b := Block{
			Kind: p.Kind, Type: Unquote(p.Type), Text: Unquote(p.Text), ToolID: Unquote(p.ID), ToolName: Unquote(p.Name),
			Input: p.Input, Error: p.Failed, Raw: p.Raw,
		}
		if b.Type == "" && b.Kind == TextBlock {
			b.Type = "text"
		}
		if p.Source != nil {
			b.MediaType = text(field(p.Source, "media_type"))
			b.Data = contents(field(p.Source, "data"))
			b.URL = text(field(p.Source, "url"))
		}
		if p.Kind == ToolResultBlock && depth < maxNesting {
			b.Content = blocksOf(appendPieces(nil, p.Content), depth+1)
		}
		out = append(out, b)
	}
	return out
}

// Blocks are the blocks of a tool result's content; plain text is one TextBlock.
func (b *RawBlock) Blocks() []RawBlock { return appendPieces(nil, b.Content) }

// Text is the text blocks joined with newlines.
func (m *Message) Text() string { return joined(m.pieces) }

func joined(pieces []RawBlock) string {
	var all []string
	for i := range pieces {
		if p := &pieces[i]; p.Kind == TextBlock {
			all = append(all, Unquote(p.Text))
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

// Output is Block.Output cut at limit characters; pictures are named.
func (p *RawBlock) Output(limit int) string {
	if c := contents(p.Content); c != nil {
		return CutEscaped(c, limit)
	}
	inner := appendPieces(nil, p.Content)
	if len(inner) == 1 && inner[0].Kind == TextBlock {
		return CutEscaped(inner[0].Text, limit)
	}
	var all []string
	for _, q := range inner {
		switch q.Kind {
		case TextBlock:
			all = append(all, Unquote(q.Text))
		case ImageBlock:
			all = append(all, "[image]")
		case DocumentBlock:
			all = append(all, "[document]")
		}
	}
	return Cut(strings.Join(all, "\n"), limit)
}
