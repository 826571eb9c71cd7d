package amount

import (
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestNearest: a slip of the fingers is understood, another word is not.
func TestNearest(t *testing.T) {
	known := []string{"prompt", "message", "reply", "compaction", "error"}
	for word, want := range map[string]string{
		"promt": "prompt", "rpompt": "prompt", "PROMPT": "prompt", "comp": "compaction", "eror": "error", "massage": "message",
		"banana": "", "x": "", "": "",
	} {
		kit.Equal(t, word, Nearest(word, known), want)
	}
}
