package session_test

import (
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/google/go-cmp/cmp"
)

// TestPlanInNewTranscript: newer versions of Claude Code go on in a new transcript when a plan is accepted with cleared
// context. The plan is its first prompt, and an interruption left over from the old transcript is none here.
func TestPlanInNewTranscript(t *testing.T) {
	leftover := `{"type":"user","uuid":"0","parentUuid":"gone","sessionId":"old","message":{"content":[{"type":"text",` +
		`"text":"[Request interrupted by user for tool use]"}]}}`
	plan := `{"type":"user","uuid":"1","parentUuid":null,"origin":{"kind":"auto-continuation"},"planContent":"# Plan",` +
		`"message":{"content":"Implement the following plan"}}`
	other := `{"type":"user","uuid":"3","parentUuid":"2","origin":{"kind":"auto-continuation"},"message":{"content":"Go on"}}`
	got := logged(t, []string{leftover, plan, below("1", answerText("2", "Done.")), other}, nil)
	want := []string{"1 user Implement the following plan", "2 assistant Done.", "2 result", "3 message Go on"}
	kit.Same(t, "messages", cmp.Diff(want, got))
}

// TestImageInPrompt: an image is in the history, whether the prompt's text names it or not.
func TestImageInPrompt(t *testing.T) {
	image := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}}`
	for content, want := range map[string]string{
		`[{"type":"text","text":"look at "},` + image + `]`:           "0 user look at [image]",
		`[{"type":"text","text":"look at [Image #1]"},` + image + `]`: "0 user look at [Image #1]",
		`[` + image + `]`: "0 user [image]",
		`"look at"`:       "0 user look at",
	} {
		got := logged(t, []string{`{"type":"user","uuid":"1","message":{"content":` + content + `}}`}, nil)
		diff := cmp.Diff([]string{want}, got)
		kit.Check(t, diff == "", "%s (-want +got):\n%s", content, diff)
	}
}
