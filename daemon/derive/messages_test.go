package derive

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
)

// However the lines arrive, and whenever the deriver is stopped, the messages are those of the whole file.
func TestMessagesOfAnyChunking(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := chat{Session: sessionA}
		var text strings.Builder
		for i := range rapid.IntRange(1, 6).Draw(r, "turns") {
			text.WriteString(c.Prompt(fmt.Sprintf("prompt %d", i)))
			id := fmt.Sprintf("toolu_%d", i)
			text.WriteString(c.Call(id, "ls") + c.Result(id, strings.Repeat("o", 600)) + c.Answer(fmt.Sprintf("answer %d", i)) + c.Done())
		}
		h := newHarness(t)
		h.start()
		defer func() { h.stop() }()
		rest := text.String()
		for len(rest) > 0 {
			n := rapid.IntRange(1, len(rest)).Draw(r, "bytes")
			h.write(sessionA, rest[:n])
			rest = rest[n:]
			switch rapid.IntRange(0, 5).Draw(r, "then") {
			case 0:
				h.sync()
			case 1:
				h.stop()
				h.start()
			}
		}
		h.sync()
		if diff := cmp.Diff(folded(text.String()), h.messages(sessionA).Messages); diff != "" {
			r.Errorf("-whole +pieces:\n%s", diff)
		}
	})
}

// folded returns the messages of a whole transcript.
func folded(text string) (messages []control.Message) {
	var s session.Fold
	var log session.Log
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		for _, e := range s.Add(int64(i), transcript.Parse([]byte(line))) {
			log.Add(e)
		}
	}
	for _, m := range log.Messages(0, 0) {
		messages = append(messages, wireMessage(&m))
	}
	return messages
}

// When more messages are to be kept, all is folded again, without effects. When the file is gone, what is kept stays.
func TestMoreMessagesKept(t *testing.T) {
	h := newHarness(t)
	h.kept = 3
	seen := &recorder{}
	h.start(seen)
	c := chat{Session: sessionA}
	var text strings.Builder
	for i := range 6 {
		text.WriteString(c.Prompt(fmt.Sprintf("prompt %d", i)))
	}
	h.send(sessionA, text.String())
	n := len(h.messages(sessionA).Messages)
	kit.Require(t, n == 3, "%d messages are kept, want 3", n)
	seen.take()
	h.stop()
	h.kept = 4
	h.start(seen)
	defer func() { h.stop() }()
	for range 2 { // once folded again, it stays so
		m := h.messages(sessionA).Messages
		kit.Check(t, len(m) == 4, "messages: %+v", m)
	}
	for _, text := range seen.take() {
		kit.Check(t, !strings.HasSuffix(text, "!"), "%s has effects again", text)
	}
}
