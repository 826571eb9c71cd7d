package transcript

import (
	"bufio"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestKnown lists every type and member that is known. What is read must be among them.
func TestKnown(t *testing.T) {
	for name, set := range map[string]struct {
		known map[string]bool
		read  []string
	}{
		"types": {knownTypes, []string{"user", "assistant", "system", "attachment", "progress", "summary", "custom-title", "ai-title",
			"last-prompt", "tag", "agent-name", "pr-link", "queue-operation", "file-history-snapshot", "file-history-delta",
			"permission-mode", "frame-link", "agent-setting"}},
		"system": {knownSystem, []string{"turn_duration", "stop_hook_summary", "compact_boundary", "microcompact_boundary",
			"local_command", "api_error", "away_summary", "scheduled_task_fire", "agents_killed"}},
		"attachments": {knownAttachments, []string{"queued_command", "model", "file", "hook_additional_context", "async_hook_response"}},
		"blocks": {knownBlocks, []string{"text", "thinking", "redacted_thinking", "image", "document", "tool_use",
			"server_tool_use", "mcp_tool_use", "tool_result", "advisor_tool_result", "web_search_tool_result"}},
		"members": {knownMembers, []string{"type", "subtype", "uuid", "parentUuid", "logicalParentUuid", "sessionId", "cwd", "gitBranch",
			"version", "entrypoint", "requestId", "promptId", "agentId", "permissionMode", "promptSource", "sourceToolAssistantUUID",
			"teamName", "agentName", "requestSessionId", "turnOrigin", "scheduledTaskId", "turnCompanion", "requestedModel", "advisorModel",
			"toolDenialKind", "origin", "message", "timestamp", "isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly",
			"isApiErrorMessage", "planContent", "toolUseResult", "content", "data", "durationMs", "compactMetadata",
			"microcompactMetadata", "attachment", "forkedFrom", "error"}},
	} {
		t.Logf("%s: %s", name, strings.Join(slices.Sorted(maps.Keys(set.known)), " "))
		for _, read := range set.read {
			kit.Check(t, set.known[read], "%s: %s is read, and not known", name, read)
		}
	}
}

// TestUnknown finds what is not known, and nothing in transcripts of every shape.
func TestUnknown(t *testing.T) {
	for line, want := range map[string]string{
		`{"type":"user","message":{"content":"hi"},"uuid":"1"}`:     "",
		`{"type":"frame-link","frameUrl":"x","whatever":1}`:         "",
		`{"type":"novel-link","x":1}`:                               "type novel-link",
		`{"x":1}`:                                                   "type ",
		`{"type":"system","subtype":"novel","novelMember":1}`:       "system novel, member novelMember",
		`{"type":"attachment","attachment":{"type":"novel","x":1}}`: "attachment novel",
		`{"type":"assistant","message":{"content":[{"type":"text"},{"type":"novel"},{"type":"novel"}]}}`: "block novel",
	} {
		kit.Equal(t, line, strings.Join(Unknown([]byte(line)), ", "), want)
	}
	files, err := filepath.Glob("session/testdata/derive/*.jsonl")
	kit.Require(t, err == nil && len(files) != 0, "no fixtures: %v", err)
	strange := map[string]bool{"strange.jsonl": true} // it has what nobody knows
	for _, file := range files {
		f := kit.Try(os.Open(file)).Must(t)
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			if Scan(s.Bytes()).Shape != Object || strange[filepath.Base(file)] {
				continue
			}
			list := Unknown(s.Bytes())
			kit.Check(t, len(list) <= 0, "%s: %s", file, list)
		}
	}
}
