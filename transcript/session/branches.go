package session

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/ccship/ccship/transcript"
)

// branches is the message tree over (uuid, parentUuid) and what follows from it: the leaf of each session in the file,
// and which records a rewind abandoned.
//
// A rewind writes no record. It shows when the parent of the next prompt is not the leaf: everything between the leaf
// and the common ancestor is abandoned if it contains a prompt or an answer. Forks without one are parallel tool calls,
// attachments or commands without effect. A record whose parent is not in the file says nothing of where it belongs: it
// goes on from the leaf. So does the record of a compaction, which has no parent. A second root that is made from an
// accepted plan, or stands below a hook that /clear ran, begins with an empty context: nothing is abandoned.
type branches struct {
	nodes   []node
	at      map[uint64]int32 // index in nodes, by id
	leaves  []leaf
	waiting []orphan
	rewinds []Rewind // not undone
	number  int64    // of the last rewind
	visit   uint32   // number of the last walk
	bound   int      // most nodes kept; 0: no limit
	horizon uint32   // newest time of a dropped node
}

// node is a record in the tree.
type node struct {
	id, parent  uint64 // hashes of uuids; parent 0: none
	line        int64
	context     uint32 // tokens in use after it; 0: unknown
	abandonedBy uint32 // number of the rewind that abandoned it; 0: none
	time        uint32 // seconds since 1970
	promptHash  uint32 // of a prompt: hash of its text
	visited     uint32 // number of the walk that visited it last; not part of the state
	flags       uint8
}

// Kinds of nodes.
const (
	isPrompt   = 1 << iota // by a human
	isQueued               // typed while the model was working
	isAnswer               // text by a model
	isBoundary             // of a compaction
	isAnchor               // it has a prompt as a child
	isPlan                 // a prompt made from an accepted plan
	isClear                // of a hook that ran because the context was cleared
)

// leaf is the end of one session's conversation in the file.
type leaf struct {
	session, uuid string
	id            uint64
	line          int64
}

// fork is a prompt whose parent is not the leaf.
type fork struct {
	at     Rewind // Number not set
	leaf   uint64 // the leaf when the prompt came
	prompt node
}

const (
	maxLeaves  = 16
	maxWaiting = 32
	maxRewinds = 64 // rewinds kept if bound is set
)

// treeRecord is a record on its way into the tree.
type treeRecord struct {
	node
	uuid, parentUUID string
	logical          string // the parent of a compaction's record, which has none
	session          string
	said             transcript.Speech
	message          bool // a user or assistant record
}

// hash maps a name to a number; "" maps to 0, other names never do.
func hash(name string) uint64 {
	if name == "" {
		return 0
	}
	h := uint64(len(name))*0x9e3779b97f4a7c15 + 1
	for len(name) >= 8 {
		h = mix(h ^ binary.LittleEndian.Uint64([]byte(name[:8])))
		name = name[8:]
	}
	var last uint64
	for i := range len(name) {
		last = last<<8 | uint64(name[i])
	}
	if h = mix(h ^ last); h == 0 {
		return 1
	}
	return h
}

func mix(h uint64) uint64 {
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	h ^= h >> 29
	h *= 0xff51afd7ed558ccd
	return h ^ h>>32
}

func (b *branches) find(id uint64) *node {
	if i, ok := b.at[id]; ok && id != 0 {
		return &b.nodes[i]
	}
	return nil
}

// known reports whether a record is in the tree, or was: then it is a copy, and only its parent may be new. A record
// dropped from a bounded tree is recognised by its time, unless it continues the end of the conversation.
func (b *branches) known(g *treeRecord) bool {
	if n := b.find(g.id); n != nil {
		if n.parent != g.parent && !b.isOrphan(g.id, g.parent) {
			b.moveTo(n, g.parent)
		}
		return true
	}
	return g.time != 0 && g.time <= b.horizon && g.parent != b.leafOf(g.session).id
}

// change is what a record reveals of the tree.
type change struct {
	rewind, undone *Rewind // nil: none
	cleared        bool    // the context is empty before this prompt; what was said before stays
}

// add adds a record whose uuid is not known.
func (b *branches) add(g treeRecord) (c change) {
	l := b.leafOf(g.session)
	follows := g.parent == l.id
	if g.flags&isBoundary != 0 && g.parent == 0 {
		g.parent = b.before(&g, l)
	}
	b.adopt(&g, l)
	parent := b.find(g.parent)
	if parent != nil {
		if parent.abandonedBy != 0 && g.message {
			c.undone = b.undo(parent.abandonedBy)
		}
		g.abandonedBy = parent.abandonedBy
		if g.context == 0 && g.flags&isBoundary == 0 {
			g.context = parent.context
		}
	}
	if g.flags&isPrompt != 0 && l.id != 0 {
		c.rewind, c.cleared = b.fork(&g, l)
	}
	b.insert(g.node)
	if g.message || g.flags&(isPrompt|isBoundary) != 0 || follows {
		*l = leaf{l.session, g.uuid, g.id, g.line}
	}
	if late := b.parentAdded(g.id); late != nil && c.rewind == nil {
		c.rewind = late
	}
	return c
}

func (b *branches) insert(n node) {
	if b.at == nil {
		b.at = map[uint64]int32{}
	}
	if b.bound > 0 && len(b.nodes) >= b.bound {
		b.shrink()
	}
	b.at[n.id] = int32(len(b.nodes))
	b.nodes = append(b.nodes, n)
}

// leafOf returns the leaf of a session; its id is 0 if there is none yet.
func (b *branches) leafOf(session string) *leaf {
	for i := range b.leaves {
		if b.leaves[i].session == session {
			return &b.leaves[i]
		}
	}
	if len(b.leaves) == maxLeaves {
		b.leaves = append(b.leaves[:0], b.leaves[1:]...)
	}
	b.leaves = append(b.leaves, leaf{session: session})
	return &b.leaves[len(b.leaves)-1]
}

// fork checks a prompt whose parent may not be the leaf.
func (b *branches) fork(g *treeRecord, l *leaf) (rewind *Rewind, cleared bool) {
	if p := b.find(g.parent); p != nil {
		p.flags |= isAnchor
	}
	if g.parent == l.id {
		return nil, (g.flags&isPlan != 0 || b.belowClear(g.parent)) && b.secondRoot(g.parent)
	}
	return b.decideFork(forkOf(g, l))
}

func forkOf(g *treeRecord, l *leaf) fork {
	at := Rewind{From: l.uuid, To: g.parentUUID, FromLine: l.line, Line: g.line}
	return fork{at: at, leaf: l.id, prompt: g.node}
}

// decideFork reports whether a fork is a rewind (nil: no), and marks what it abandons; or that the context was cleared.
func (b *branches) decideFork(f fork) (rewind *Rewind, cleared bool) {
	common := b.commonAncestor(f.leaf, f.prompt.parent)
	if common == 0 {
		if f.prompt.flags&isPlan != 0 || b.belowClear(f.prompt.parent) && b.secondRoot(f.prompt.parent) {
			return nil, true
		}
		if b.rootOf(f.prompt).parent != 0 { // it is not in the file, or the parents are a loop
			return nil, false
		}
	}
	found := false
	b.walkUp(f.leaf, common, func(i int32) {
		n := &b.nodes[i]
		switch {
		case n.flags&isPrompt != 0:
			found = found || !n.samePrompt(f.prompt)
		case n.flags&isAnswer != 0, n.flags&isBoundary != 0 && f.prompt.parent == 0:
			found = true
		}
	})
	if !found {
		return nil, false
	}
	b.number++
	rewind = &f.at
	rewind.Number, rewind.ToLine = b.number, -1
	if n := b.find(cmp.Or(common, f.prompt.parent)); n != nil {
		rewind.ToLine = n.line
	}
	b.abandon(f, common)
	rewind.Left = b.left(b.number, rewind.Line)
	b.rewinds = append(b.rewinds, *rewind)
	if b.bound > 0 && len(b.rewinds) > maxRewinds {
		b.rewinds = append(b.rewinds[:0], b.rewinds[1:]...)
	}
	return rewind, false
}

// samePrompt reports whether two nodes are one prompt recorded twice: by the queue and by the turn, or copied by a
// compaction.
func (n *node) samePrompt(m node) bool {
	if n.promptHash != m.promptHash {
		return false
	}
	return (n.flags|m.flags)&isQueued != 0 || n.parent == m.parent && n.time == m.time
}

// commonAncestor returns the last message that two messages have in common, 0 if there is none. Both sides move up in
// turns, so the cost is the distance, not the depth.
func (b *branches) commonAncestor(one, other uint64) uint64 {
	b.visit += 2
	sides := [2]uint64{one, other}
	for sides[0] != 0 || sides[1] != 0 {
		for s := range sides {
			n := b.find(sides[s])
			if n == nil || n.visited == b.visit+uint32(s) {
				sides[s] = 0
				continue
			}
			if n.visited == b.visit+uint32(1-s) {
				return n.id
			}
			n.visited = b.visit + uint32(s)
			sides[s] = n.parent
		}
	}
	return 0
}

// walkUp visits the nodes from one message up to another, which is not visited; each node once.
func (b *branches) walkUp(from, to uint64, visit func(int32)) {
	b.visit += 2
	for id := from; id != to; {
		i, ok := b.at[id]
		if !ok || b.nodes[i].visited == b.visit {
			return
		}
		b.nodes[i].visited = b.visit
		visit(i)
		id = b.nodes[i].parent
	}
}

// abandon marks what a rewind abandons: the path from the leaf to the common ancestor, and the nodes attached to it. A
// node that was moved may come before its parent.
func (b *branches) abandon(f fork, common uint64) {
	number := uint32(b.number)
	b.walkUp(f.leaf, common, func(i int32) { b.nodes[i].abandonedBy = number })
	for more := true; more; {
		more = false
		for i := range b.nodes {
			n := &b.nodes[i]
			if n.abandonedBy != 0 || n.line == f.at.Line {
				continue
			}
			if p := b.find(n.parent); p != nil && p.abandonedBy == number {
				n.abandonedBy, more = number, true
			}
		}
	}
}

// undo reverts a rewind: the abandoned branch continues, so two processes write the transcript.
func (b *branches) undo(number uint32) *Rewind {
	for i := range b.nodes {
		if b.nodes[i].abandonedBy == number {
			b.nodes[i].abandonedBy = 0
		}
	}
	for i, r := range b.rewinds {
		if r.Number == int64(number) {
			b.rewinds = append(b.rewinds[:i], b.rewinds[i+1:]...)
			return &r
		}
	}
	return &Rewind{Number: int64(number), ToLine: -1}
}

// shrink drops the older half of the nodes that are unlikely to be returned to. Their children are attached to the next
// ancestor and inherit its flags.
func (b *branches) shrink() {
	keep := len(b.nodes) - b.bound/2
	old := b.nodes
	b.drop(func(i int) bool {
		return i >= keep || old[i].flags&(isAnchor|isBoundary) != 0 ||
			slices.ContainsFunc(b.leaves, func(l leaf) bool { return l.id == old[i].id })
	})
	if over := len(b.nodes) - b.bound*3/4; over > 0 {
		b.drop(func(i int) bool { return i >= over })
	}
}

// drop removes the nodes for which keep is false.
func (b *branches) drop(keep func(int) bool) {
	up := map[uint64]node{} // the dropped nodes
	kept := make([]node, 0, b.bound)
	for i, n := range b.nodes {
		if !keep(i) {
			up[n.id] = n
			b.horizon = max(b.horizon, n.time)
			delete(b.at, n.id)
		}
	}
	for i, n := range b.nodes {
		if !keep(i) {
			continue
		}
		for range len(up) {
			gone, ok := up[n.parent]
			if !ok {
				break
			}
			n.parent = gone.parent
			if gone.flags&(isPrompt|isAnswer) != 0 {
				n.flags |= isAnswer
			}
		}
		if _, cycle := up[n.parent]; cycle {
			n.parent = 0
		}
		b.at[n.id] = int32(len(kept))
		kept = append(kept, n)
	}
	b.nodes = kept
}
