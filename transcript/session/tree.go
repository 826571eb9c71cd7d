package session

import (
	"cmp"
	"slices"

	"github.com/ccship/ccship/transcript"
)

// Tree is the message tree of one transcript, for readers that need to know which lines are part of the conversation as
// it stands. The zero value is empty. It uses about 120 bytes per record.
type Tree struct {
	branches branches
	own      ownership
}

// Add adds the record on a line, in file order. rewind is set when the record reveals that the user went back, undone
// when it reveals that an earlier Rewind was not one.
func (t *Tree) Add(line int64, r *transcript.Record) (rewind, undone *Rewind) {
	if !t.own.inTree(r) {
		return nil, nil
	}
	g := treeRecordOf(line, r)
	if t.branches.known(&g) {
		return nil, nil
	}
	c := t.branches.add(g)
	return c.rewind, c.undone
}

// Abandoned is the number of the Rewind that removed the line's record from the conversation; 0 if the record is part
// of it, or not in the tree.
func (t *Tree) Abandoned(line int64) int64 {
	i, _ := slices.BinarySearchFunc(t.branches.nodes, line, func(n node, line int64) int {
		return cmp.Compare(n.line, line)
	})
	for ; i < len(t.branches.nodes) && t.branches.nodes[i].line == line; i++ {
		if cut := t.branches.nodes[i].abandonedBy; cut != 0 {
			return int64(cut)
		}
	}
	return 0
}

// ActiveBranch returns the lines whose records are part of the conversation, ascending. It includes parallel tool
// calls, which a walk along the parents would miss.
func (t *Tree) ActiveBranch() []int64 {
	var lines []int64
	for _, n := range t.branches.nodes {
		if n.abandonedBy == 0 && (len(lines) == 0 || lines[len(lines)-1] != n.line) {
			lines = append(lines, n.line)
		}
	}
	return lines
}

// Rewinds returns the rewinds that were not undone, oldest first.
func (t *Tree) Rewinds() []Rewind { return slices.Clone(t.branches.rewinds) }

// ownership separates a transcript's own records from the sidechains that older versions of Claude Code wrote between
// them. In an agent's transcript, the sidechain is the transcript.
type ownership struct {
	known, agent bool
}

// includes reports whether a user, assistant, system or attachment record is part of this transcript's conversation.
func (o *ownership) includes(r *transcript.Record) bool {
	if !o.known && r.UUID != "" {
		o.known, o.agent = true, r.Sidechain && r.AgentID != ""
	}
	return r.Sidechain == o.agent
}

// inTree reports whether the record belongs to the transcript's message tree.
func (o *ownership) inTree(r *transcript.Record) bool {
	if r.UUID == "" || !o.includes(r) {
		return false
	}
	switch r.Type {
	case "user", "assistant", "system", "attachment", "progress":
		return true
	}
	return false
}

// treeRecordOf extracts what the tree needs of a record.
func treeRecordOf(line int64, r *transcript.Record) treeRecord {
	g := treeRecord{uuid: r.UUID, parentUUID: r.ParentUUID, session: r.SessionID, message: r.Message != nil}
	g.node = node{id: hash(r.UUID), parent: hash(r.ParentUUID), line: line}
	if s := r.Time.Unix(); s > 0 && s < 1<<32 {
		g.time = uint32(s)
	}
	switch {
	case r.Compact != nil && !r.Compact.Micro:
		g.flags, g.logical = isBoundary, r.LogicalParentUUID
		g.context = uint32(min(r.Compact.Post, 1<<31))
	case r.Type == "assistant" && r.Message != nil && !r.Message.Synthetic() && !r.APIError && hasText(r.Message):
		g.flags = isAnswer
	case r.Type == "user" || r.Type == "attachment":
		g.said = r.Speech()
		if g.said.Speaker.Human() {
			g.flags, g.promptHash = isPrompt, uint32(hash(g.said.Text))
			if r.Type == "attachment" || r.PromptSource == "queued" {
				g.flags |= isQueued
			}
			if r.FromPlan {
				g.flags |= isPlan
			}
		}
	}
	return g
}

// hasText reports whether a message has a text block that says something.
func hasText(m *transcript.Message) bool {
	blocks := m.RawBlocks()
	for i := range blocks {
		if p := &blocks[i]; p.Kind == transcript.TextBlock && !transcript.OnlySpace(p.Text) {
			return true
		}
	}
	return false
}
