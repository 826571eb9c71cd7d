package session

import "encoding/binary"

// branches is the message tree over (uuid, parentUuid), and what is known of it: the leaf of each session in the
// file, and which records a rewind has cut off.
//
// A rewind writes nothing. It shows when the next prompt hangs off a message that is not the leaf: what lies between
// the leaf and their last common message was given up, if a prompt or an answer is in it. Forks without one are
// parallel tool calls, attachments, dead commands.
type branches struct {
	nodes   []node
	at      map[uint64]int32 // place in nodes, by id
	leaves  []leaf
	waiting []fork
	rewinds []Rewind // that were not undone
	number  int64    // of the last rewind
	visit   uint32   // of the last climb
	bound   int      // most nodes kept; 0: all
	horizon uint32   // newest time of a node that was dropped
}

// node is a record of the tree.
type node struct {
	id, parent  uint64 // hashes of uuids; parent 0 is none
	line        int64
	context     uint32 // tokens in use after it, 0: not known
	abandonedBy uint32 // number of the rewind that gave it up
	time        uint32 // seconds since 1970
	promptHash  uint32 // of prompts: hash of the text
	visited     uint32 // of the climb that came by last; not part of the state
	flags       uint8
}

// What a node is.
const (
	isPrompt   = 1 << iota // by a human
	isQueued               // typed while the model was working
	isAnswer               // text by a model
	isBoundary             // of a compaction
	isAnchor               // a prompt hangs off it
)

// leaf is the end of the conversation of one session in the file.
type leaf struct {
	session, uuid string
	id            uint64
	line          int64
}

// fork is a prompt whose parent has not come yet.
type fork struct {
	at     Rewind // without its number
	leaf   uint64 // when it came
	prompt node
}

const (
	maxLeaves  = 16
	maxWaiting = 8
	maxRewinds = 64 // rewinds, of a bounded tree
)

// treeRecord is a record on its way into the tree.
type treeRecord struct {
	node
	uuid, parentUUID string
	session          string
	text             string // of a prompt
	message          bool   // a user or assistant record
}

// hash is a number for a name. 0 is kept for no name.
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

// known says whether a record is in the tree already, or was: then it is a copy, and only its parent is news. What was
// dropped from a bounded tree is recognised by its age, unless it goes on where the conversation ends.
func (b *branches) known(g *treeRecord) bool {
	if n := b.find(g.id); n != nil {
		n.parent = g.parent
		return true
	}
	return g.time != 0 && g.time <= b.horizon && g.parent != b.leafOf(g.session).id
}

// add takes a record with a uuid that is not known.
func (b *branches) add(g treeRecord) (rewind, undone *Rewind) {
	parent := b.find(g.parent)
	if parent != nil {
		if parent.abandonedBy != 0 && g.message {
			undone = b.undo(parent.abandonedBy)
		}
		g.abandonedBy = parent.abandonedBy
		if g.context == 0 {
			g.context = parent.context
		}
	}
	l := b.leafOf(g.session)
	if g.flags&isPrompt != 0 && l.id != 0 {
		rewind = b.fork(&g, l)
	}
	b.insert(g.node)
	if g.message || g.flags&(isPrompt|isBoundary) != 0 || g.parent == l.id {
		*l = leaf{l.session, g.uuid, g.id, g.line}
	}
	if late := b.resolveWaiting(g.id); late != nil && rewind == nil {
		rewind = late
	}
	return rewind, undone
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

// leafOf is the leaf of a session; with id 0 when it has none yet.
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

// fork looks at a prompt that may not hang off the leaf.
func (b *branches) fork(g *treeRecord, l *leaf) *Rewind {
	if p := b.find(g.parent); p != nil {
		p.flags |= isAnchor
	}
	if g.parent == l.id {
		return nil
	}
	at := Rewind{From: l.uuid, To: g.parentUUID, FromLine: l.line, Line: g.line}
	f := fork{at: at, leaf: l.id, prompt: g.node}
	if g.parent != 0 && b.find(g.parent) == nil {
		if len(b.waiting) == maxWaiting {
			b.waiting = append(b.waiting[:0], b.waiting[1:]...)
		}
		b.waiting = append(b.waiting, f)
		return nil
	}
	return b.decideFork(f)
}

// resolveWaiting decides the forks that have waited for this record.
func (b *branches) resolveWaiting(id uint64) (rewind *Rewind) {
	kept := b.waiting[:0]
	for _, f := range b.waiting {
		if f.prompt.parent != id {
			kept = append(kept, f)
		} else if found := b.decideFork(f); found != nil {
			rewind = found
		}
	}
	b.waiting = kept
	return rewind
}

// decideFork says whether a fork is a rewind, and cuts off what it gives up.
func (b *branches) decideFork(f fork) *Rewind {
	common := b.commonAncestor(f.leaf, f.prompt.parent)
	found := false
	first := int32(len(b.nodes))
	b.walkUp(f.leaf, common, func(i int32) {
		n := &b.nodes[i]
		first = min(first, i)
		switch {
		case n.flags&isPrompt != 0:
			found = found || !n.samePrompt(f.prompt)
		case n.flags&isAnswer != 0, n.flags&isBoundary != 0 && f.prompt.parent == 0:
			found = true
		}
	})
	if !found {
		return nil
	}
	b.number++
	rewind := f.at
	rewind.Number, rewind.ToLine = b.number, -1
	if n := b.find(common); n != nil {
		rewind.ToLine = n.line
	}
	b.abandon(f, common, first)
	b.rewinds = append(b.rewinds, rewind)
	if b.bound > 0 && len(b.rewinds) > maxRewinds {
		b.rewinds = append(b.rewinds[:0], b.rewinds[1:]...)
	}
	return &rewind
}

// samePrompt says whether two prompts are one, recorded twice: as the queue gave it out and as the turn's own, or
// copied by a compaction.
func (n *node) samePrompt(m node) bool {
	if n.promptHash != m.promptHash {
		return false
	}
	return (n.flags|m.flags)&isQueued != 0 || n.parent == m.parent && n.time == m.time
}

// commonAncestor is the last message that two have in common, 0 if there is none. Both sides climb in turns, so the cost is
// the distance, not the depth.
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

// walkUp visits the nodes from a message up to before another, each once.
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

// cut marks what a rewind gives up: the way from the leaf to the common message, and what hangs off it.
func (b *branches) abandon(f fork, common uint64, first int32) {
	number := uint32(b.number)
	b.walkUp(f.leaf, common, func(i int32) { b.nodes[i].abandonedBy = number })
	for i := first; int(i) < len(b.nodes); i++ {
		n := &b.nodes[i]
		if p := b.find(n.parent); n.abandonedBy == 0 && p != nil && p.abandonedBy == number && n.line != f.at.Line {
			n.abandonedBy = number
		}
	}
}

// undo takes a rewind back: the branch it gave up goes on, so two processes write.
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

// shrink drops the older half of what nobody is likely to go back to. Its children move up, and inherit what counts.
func (b *branches) shrink() {
	keep := len(b.nodes) - b.bound/2
	old := b.nodes
	b.drop(func(i int) bool {
		return i >= keep || old[i].flags&(isAnchor|isBoundary) != 0 || b.isLeaf(old[i].id)
	})
	if over := len(b.nodes) - b.bound*3/4; over > 0 {
		b.drop(func(i int) bool { return i >= over })
	}
}

func (b *branches) isLeaf(id uint64) bool {
	for i := range b.leaves {
		if b.leaves[i].id == id {
			return true
		}
	}
	return false
}

// drop removes the nodes that keep does not want.
func (b *branches) drop(keep func(int) bool) {
	up := map[uint64]node{} // what was dropped
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
