package transcript

import "strings"

// AgentMeta is the content of an agent's sidecar file, agent-<id>.meta.json.
type AgentMeta struct {
	AgentType, Description, ToolUseID, Model, WorktreePath string
	SpawnDepth                                             int64
}

// ParseAgentMeta parses a sidecar; missing members stay empty.
func ParseAgentMeta(data []byte) AgentMeta {
	object := []byte(strings.TrimSpace(string(data)))
	return AgentMeta{
		AgentType: text(field(object, "agentType")), Description: text(field(object, "description")),
		ToolUseID: text(field(object, "toolUseId")), Model: text(field(object, "model")),
		WorktreePath: text(field(object, "worktreePath")), SpawnDepth: integer(field(object, "spawnDepth")),
	}
}
