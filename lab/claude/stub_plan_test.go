//go:build unix

package claude_test

import (
	"bytes"
	"encoding/json"
	"regexp"
)

// planFile stands in a tool's input for the file that Claude Code has the model write its plan into.
const planFile = "PLAN-FILE"

// planPath finds that file in a request, as JSON.
var planPath = regexp.MustCompile(`[^\s"\\` + "`" + `]+/plans/[\w-]+\.md`)

// withPlanFile puts the file's name in.
func withPlanFile(input json.RawMessage, messages []message) json.RawMessage {
	if !bytes.Contains(input, []byte(planFile)) {
		return input
	}
	for _, m := range messages {
		if path := planPath.Find(m.Content); path != nil {
			return bytes.ReplaceAll(input, []byte(planFile), path)
		}
	}
	return input
}
