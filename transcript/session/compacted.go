package session

// A compaction's record has no parent: the context begins with it. For a person the conversation goes on, and the user
// can go back to what was said before it. So it is a child of the record that the conversation had come to. Of what was
// said before, a compaction may keep the end: copies with the same ids that hang below the summary. In the tree the
// compaction then stands before them.

// before returns the record that the conversation had come to when it was compacted; 0 if there is none.
func (b *branches) before(g *treeRecord, l *leaf) uint64 {
	if id := hash(g.logical); b.find(id) != nil {
		return id
	}
	if b.find(l.id) != nil {
		return l.id
	}
	return 0
}

// moveTo gives a record the parent that a copy of it has. When the parent is below the record, because a compaction
// kept it, the compaction moves to the record's position.
func (b *branches) moveTo(n *node, parent uint64) {
	compaction := int32(-1)
	below := false
	b.walkUp(parent, n.id, func(i int32) {
		below = b.nodes[i].parent == n.id
		if b.nodes[i].flags&isBoundary != 0 {
			compaction = i
		}
	})
	switch {
	case parent == n.id:
	case !below:
		n.parent = parent
	case compaction >= 0:
		b.nodes[compaction].parent, n.parent = n.parent, parent
	}
}

// maxSpans is how many spans of lines are remembered of a rewind. One is usual: Claude Code writes branches one after
// the other.
const maxSpans = 16

// left returns the lines that a rewind by a prompt on a line abandoned. Lines without a record of the tree belong to
// the one before them: a prompt that only the queue has, for example.
func (b *branches) left(number, line int64) (spans []Span) {
	open := false
	for i := range b.nodes {
		n := &b.nodes[i]
		switch abandoned := int64(n.abandonedBy) == number; {
		case abandoned && !open:
			if len(spans) == maxSpans {
				return spans
			}
			spans, open = append(spans, Span{n.line, n.line}), true
		case abandoned:
			spans[len(spans)-1].Last = n.line
		case open && n.line > spans[len(spans)-1].Last:
			spans[len(spans)-1].Last, open = n.line-1, false
		}
	}
	if open {
		spans[len(spans)-1].Last = max(spans[len(spans)-1].Last, line-1)
	}
	return spans
}

// secondRoot reports whether only records of Claude Code's own lie between a message and the beginning of its branch,
// and the conversation began elsewhere.
func (b *branches) secondRoot(id uint64) bool {
	spoken := false
	var root node
	b.walkUp(id, 0, func(i int32) {
		root = b.nodes[i]
		spoken = spoken || root.flags&(isPrompt|isAnswer|isBoundary) != 0
	})
	if spoken || root.parent != 0 {
		return false
	}
	for i := range b.nodes {
		if n := &b.nodes[i]; n.line < root.line && n.flags&(isPrompt|isAnswer) != 0 {
			return true
		}
	}
	return false
}

// mostSilent is how many records without speech are looked at above a prompt: what hooks and commands write is short.
const mostSilent = 64

// belowClear reports whether what a hook wrote because the context was cleared stands above a prompt, with nothing said
// in between. parent is the prompt's.
func (b *branches) belowClear(parent uint64) bool {
	for range mostSilent {
		n := b.find(parent)
		if n == nil || n.flags&(isPrompt|isAnswer|isBoundary|isClear) != 0 {
			return n != nil && n.flags&isClear != 0
		}
		parent = n.parent
	}
	return false
}
