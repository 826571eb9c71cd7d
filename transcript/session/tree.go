package session

import (
	"strings"

	"github.com/ccship/ccship/transcript"
)

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
	case r.StartedBy == "clear":
		g.flags = isClear
	case r.Type == "user" || r.Type == "attachment":
		g.said = r.Speech()
		if g.said.Speaker.Human() {
			g.flags, g.promptHash = isPrompt, uint32(hash(g.said.Text))
			if r.Type == "attachment" || r.PromptSource == "queued" {
				g.flags |= isQueued
			}
			if r.FromPlan || strings.HasPrefix(g.said.Text, implementPlan+":\n") { // old versions have the text only
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
