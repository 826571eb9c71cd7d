package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript"
	. "github.com/ccship/ccship/transcript/session"
)

// The limits of a session and the size of a log are those they are given, also of a state that is read again.
func TestConfiguredLimits(t *testing.T) {
	s, log := Fold{InputLimit: 5, OutputLimit: 7}, Log{Size: 3}
	add := func(line int64, text string) {
		for _, e := range s.Add(line, transcript.Parse([]byte(text))) {
			log.Add(e)
		}
	}
	call := func(n int) {
		add(int64(2*n), fmt.Sprintf(`{"type":"assistant","uuid":"a%d","message":{"id":"m%[1]d","role":"assistant","model":"m","content":[{"type":"tool_use","id":"t%[1]d","name":"Other","input":{"x":%q}}]}}`, n, strings.Repeat("i", 9)))
		add(int64(2*n+1), fmt.Sprintf(`{"type":"user","uuid":"r%d","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%[1]d","content":%q}]}}`, n, strings.Repeat("o", 9)))
	}
	for n := range 5 {
		call(n)
	}
	state, _ := s.MarshalBinary()
	kept, _ := log.MarshalBinary()
	kit.Must(t, s.UnmarshalBinary(state))
	kit.Must(t, log.UnmarshalBinary(kept))
	call(5)
	messages := log.Messages(0, 0)
	kit.Require(t, len(messages) == 3, "%d messages", len(messages))
	for _, m := range messages {
		if string(m.ToolInput) != `{"x":"iiiii... (9 chars total)"}` || m.Output != "ooooooo... (9 chars total)" {
			t.Errorf("input %s, output %q", m.ToolInput, m.Output)
		}
	}
	log.Size = MaxLogSize + 500
	for n := range MaxLogSize + 10 {
		call(n + 10)
	}
	kit.Equal(t, "messages", log.Len(), MaxLogSize)
}
