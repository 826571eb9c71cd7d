package transcript

import (
	"bytes"
	"strings"
)

// RawBlock is a Block whose strings are not decoded: pass them to CutEscaped or Unquote. Its slices point into the
// line.
type RawBlock struct {
	Kind                        BlockKind
	Type, Text, ID, Name        []byte
	Input, Content, Source, Raw []byte
	Failed                      bool
}

// maxBlocks is how many blocks of a message, or of a tool result, are read. Claude Code writes a few; a block takes a
// hundred times as much memory as the shortest has bytes.
const maxBlocks = 1000

// appendBlocks appends the blocks of a message's content: a string, an array or one object. A string is one text block.
func appendBlocks(dst []RawBlock, content []byte) []RawBlock {
	if len(content) == 0 {
		return dst
	}
	w := walker{b: content}
	switch content[0] {
	case '"':
		return append(dst, RawBlock{Kind: TextBlock, Text: stringContents(content), Raw: content})
	case '[':
		return w.appendBlocks(dst)
	case '{':
		dst = append(dst, RawBlock{})
		dst[len(dst)-1].read(&w)
	}
	return dst
}

// appendBlocks does the same for the array at w.i, and moves w behind it.
func (w *walker) appendBlocks(dst []RawBlock) []RawBlock {
	start := w.enter()
	for w.skipComma(); w.i < len(w.b) && w.b[w.i] != ']' && len(dst) < maxBlocks; w.skipComma() {
		if w.b[w.i] == '{' {
			dst = append(dst, RawBlock{})
			dst[len(dst)-1].read(w)
			continue
		}
		value := w.value(w.i)
		if len(value) == 0 {
			break
		}
		if value[0] == '"' {
			dst = append(dst, RawBlock{Kind: TextBlock, Text: stringContents(value), Raw: value})
		}
	}
	w.leave(start)
	return dst
}

// read reads the block at w.i.
func (p *RawBlock) read(w *walker) {
	var result, thinking []byte
	start := w.enter()
	for key, value, ok := w.member(); ok; key, value, ok = w.member() {
		switch string(key) {
		case "type":
			p.Type = stringContents(value)
		case "text":
			p.Text = stringContents(value)
		case "thinking":
			thinking = stringContents(value)
		case "id":
			p.ID = stringContents(value)
		case "tool_use_id":
			result = stringContents(value)
		case "name":
			p.Name = stringContents(value)
		case "input":
			p.Input = value
		case "content":
			p.Content = value
		case "source":
			p.Source = value
		case "is_error":
			p.Failed = isTrue(value)
		}
	}
	w.leave(start)
	p.Raw = w.b[start:w.i]
	switch p.Kind = kindOf(p.Type); p.Kind {
	case ThinkingBlock:
		p.Text = thinking
	case ToolResultBlock:
		p.ID = result
		p.Failed = p.Failed || bytes.HasSuffix(stringContents(field(p.Content, "type")), []byte("_error"))
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

// Blocks decodes the content. A plain string is one TextBlock.
func (m *Message) Blocks() []Block {
	left := maxBlocks
	return blocksOf(m.blocks, 0, &left)
}

// maxResult is how much is read of a result's content of another type than text, in characters.
const maxResult = 1 << 20

// maxNesting is how deep tool results inside tool results are decoded.
const maxNesting = 3

// blocksOf decodes pieces, and left of them and of what is in them.
func blocksOf(pieces []RawBlock, depth int, left *int) []Block {
	pieces = pieces[:min(len(pieces), max(*left, 0))]
	if *left -= len(pieces); len(pieces) == 0 {
		return nil
	}
	out := make([]Block, 0, len(pieces))
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
			b.Data = stringContents(field(p.Source, "data"))
		}
		if p.Kind == ToolResultBlock && depth < maxNesting && *left > 0 {
			b.Content = blocksOf(appendBlocks(nil, p.Content), depth+1, left)
		}
		if s := p.resultText(maxResult); depth > 0 && s != "" {
			b.Kind, b.Text = TextBlock, s
		}
		out = append(out, b)
	}
	return out
}

// Blocks returns the blocks of a tool result's content. A plain string is one TextBlock.
func (b *RawBlock) Blocks() []RawBlock { return appendBlocks(nil, b.Content) }

// Text returns the text of the text blocks, joined with newlines.
func (m *Message) Text() string { return joinText(m.blocks) }

func joinText(pieces []RawBlock) string {
	var all []string
	for i := range pieces {
		if p := &pieces[i]; p.Kind == TextBlock {
			all = append(all, Unquote(p.Text))
		}
	}
	return strings.Join(all, "\n")
}

// Output returns the text of a tool result's content, joined with newlines.
func (b Block) Output() string {
	var all []string
	for _, c := range b.Content {
		if c.Kind == TextBlock {
			all = append(all, c.Text)
		}
	}
	return WithoutToolsUsed(strings.Join(all, "\n"))
}

// Output is Block.Output cut at limit characters; images and documents are named.
func (p *RawBlock) Output(limit int) string {
	if c := stringContents(p.Content); c != nil {
		return CutEscaped(skipToolsUsed(c), limit)
	}
	inner := appendBlocks(nil, p.Content)
	if len(inner) == 1 && inner[0].Kind == TextBlock {
		return CutEscaped(skipToolsUsed(inner[0].Text), limit)
	}
	var all []string
	for i := range inner {
		q := &inner[i]
		switch q.Kind {
		case TextBlock:
			all = append(all, Unquote(q.Text))
		case ImageBlock:
			all = append(all, "[image]")
		case DocumentBlock:
			all = append(all, "[document]")
		case OtherBlock:
			if s := q.resultText(limit); s != "" {
				all = append(all, s)
			}
		}
	}
	return Cut(WithoutToolsUsed(strings.Join(all, "\n")), limit)
}
