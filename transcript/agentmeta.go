package transcript

import "strings"

// AgentMeta is what an agent's sidecar (agent-<id>.meta.json) says.
type AgentMeta struct {
	AgentType, Description, ToolUseID, Model, WorktreePath string
	SpawnDepth                                             int64
}

// ParseAgentMeta reads a sidecar; what it does not say stays empty.
func ParseAgentMeta(data []byte) AgentMeta {
	object := []byte(strings.TrimSpace(string(data)))
	return AgentMeta{
		AgentType: text(field(object, "agentType")), Description: text(field(object, "description")),
		ToolUseID: text(field(object, "toolUseId")), Model: text(field(object, "model")),
		WorktreePath: text(field(object, "worktreePath")), SpawnDepth: whole(field(object, "spawnDepth")),
	}
}
