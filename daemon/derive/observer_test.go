package derive

import (
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript"
)

// What Claude Code writes down of a hook that it waits for, and of one that it does not wait for.
func TestHookText(t *testing.T) {
	for line, want := range map[string]string{
		`{"type":"attachment","attachment":{"type":"hook_additional_context","content":["one","two"],"hookName":"SessionStart"}}`:                                                                                            "one\ntwo\n",
		`{"type":"attachment","attachment":{"type":"async_hook_response","hookEvent":"PostToolUse","response":{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"a\nb"}},"stdout":"x","exitCode":0}}`: "a\nb",
		`{"type":"attachment","attachment":{"type":"async_hook_response","response":{"systemMessage":"x"}}}`:                                                                                                                 "",
		`{"type":"attachment","attachment":{"type":"async_hook_response","response":"none"}}`:                                                                                                                                "",
		`{"type":"attachment","attachment":{"type":"hook_success","content":"c","stdout":"s"}}`:                                                                                                                              "",
		`{"type":"attachment","attachment":"hook_additional_context"}`:                                                                                                                                                       "",
	} {
		r := transcript.Parse([]byte(line))
		kit.Equal(t, line, transcript.HookText(&r), want)
	}
}
