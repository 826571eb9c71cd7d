package session

import "slices"

// orphan is a record whose parent has not been added. Until it is, the record goes on from the leaf that it came after.
type orphan struct {
	id, parent uint64
	fork       fork // of a prompt; it is decided when the parent is added
}

// adopt makes a record whose parent is not in the tree a child of the leaf.
func (b *branches) adopt(g *treeRecord, l *leaf) {
	if l.id == 0 || g.parent == 0 || b.find(g.parent) != nil {
		return
	}
	if len(b.waiting) == maxWaiting {
		b.waiting = append(b.waiting[:0], b.waiting[1:]...)
	}
	o := orphan{id: g.id, parent: g.parent}
	if g.flags&isPrompt != 0 {
		o.fork = forkOf(g, l)
	}
	b.waiting = append(b.waiting, o)
	g.parent = l.id
}

// isOrphan reports whether a record waits for a parent.
func (b *branches) isOrphan(id, parent uint64) bool {
	return slices.ContainsFunc(b.waiting, func(o orphan) bool { return o.id == id && o.parent == parent })
}

// parentAdded gives the children of a record that came before it to it, and decides their forks.
func (b *branches) parentAdded(id uint64) (rewind *Rewind) {
	var children []orphan
	b.waiting = slices.DeleteFunc(b.waiting, func(o orphan) bool {
		child := o.parent == id && o.id != id
		if child {
			children = append(children, o)
		}
		return child
	})
	for _, o := range children {
		if n := b.find(o.id); n != nil {
			n.parent = id
		}
		if o.fork.prompt.id == 0 {
			continue
		}
		if r, _ := b.decideFork(o.fork); r != nil {
			rewind = r
		}
	}
	return rewind
}

// rootOf returns the first message on the way to a prompt. Its parent is 0, unless that is not in the tree, or the
// parents are a loop.
func (b *branches) rootOf(prompt node) node {
	root := prompt
	b.walkUp(prompt.parent, 0, func(i int32) { root = b.nodes[i] })
	return root
}
