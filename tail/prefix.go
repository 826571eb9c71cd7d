package tail

// Prefix is the beginning of a file, read by the caller line by line: it makes the cursor and the marks with which
// reading goes on behind it, as if the tailer had read it. The zero Prefix is empty.
type Prefix struct {
	walk   prefixWalker
	anchor []byte // the last bytes, at most AnchorSize
}

// Add appends whole lines, each with its newline.
func (p *Prefix) Add(lines []byte) {
	if p.walk.offset == 0 {
		p.walk.Start(Cursor{}, nil)
	}
	p.walk.Add(lines)
	p.anchor = append(p.anchor, lines[max(0, len(lines)-AnchorSize):]...)
	p.anchor = p.anchor[max(0, len(p.anchor)-AnchorSize):]
}

// Cursor returns the position behind what was added, in a generation.
func (p *Prefix) Cursor(generation uint32) Cursor {
	c := p.walk.Cursor(generation)
	c.Anchor = hashOf(p.anchor)
	return c
}

// Marks returns the marks of what was added. The caller does not change them.
func (p *Prefix) Marks() []Mark { return p.walk.marks }
