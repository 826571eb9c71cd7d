package session

import (
	"slices"

	"github.com/ccship/ccship/transcript"
)

// Tree is the message tree of one transcript, whole: the Fold keeps a bounded one, and is compared with this.
type Tree struct {
	branches branches
	own      ownership
}

// Add adds the record on a line, in file order.
func (t *Tree) Add(line int64, r *transcript.Record) (rewind *Rewind) {
	if !t.own.inTree(r) {
		return nil
	}
	g := treeRecordOf(line, r)
	if t.branches.known(&g) {
		return nil
	}
	return t.branches.add(g).rewind
}

// Abandoned is the number of the Rewind that removed the line's record from the conversation; 0 if the record is part
// of it, or not in the tree.
func (t *Tree) Abandoned(line int64) int64 {
	left := func(n node) bool { return n.line == line && n.abandonedBy != 0 }
	if i := slices.IndexFunc(t.branches.nodes, left); i >= 0 {
		return int64(t.branches.nodes[i].abandonedBy)
	}
	return 0
}

// Rewinds returns the rewinds that were not undone, oldest first.
func (t *Tree) Rewinds() []Rewind { return slices.Clone(t.branches.rewinds) }
