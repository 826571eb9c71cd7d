package web_test

import (
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestRepeated: records that a resume or a compaction writes again are shown once.
func TestRepeated(t *testing.T) {
	s := loggedIn(t)
	const (
		prompt = `{"type":"user","uuid":"a","parentUuid":null,"message":{"role":"user","content":"once asked"}}`
		call   = `{"type":"assistant","uuid":"b","parentUuid":"a","message":{"role":"assistant","id":"m","model":"x","content":[` +
			`{"type":"text","text":"once said"},{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}}]}}`
		result = `{"type":"user","uuid":"c","parentUuid":"b","message":{"role":"user","content":[` +
			`{"type":"tool_result","tool_use_id":"t","content":"once listed"}]}}`
	)
	s.put(t, head("repeated"), prompt, call, result, prompt, call, result,
		`{"type":"user","uuid":"d","parentUuid":"c","message":{"role":"user","content":"asked later"}}`)
	shown := s.get(t, sessionPath("repeated", ""))
	for _, words := range []string{"once said", "once listed"} {
		kit.Equal(t, words+", times", strings.Count(shown, words), 1)
	}
	got := items(t, shown)
	kit.Check(t, strings.Contains(got["L6"], "asked later") && got["L3"]+got["L4"]+got["L5"] == "", "%q", got)
}
