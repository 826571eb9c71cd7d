package session_test

import (
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestCheckpointsOfWindows: what a transcript says of its windows and of results that were cleared makes no thresholds.
func TestCheckpointsOfWindows(t *testing.T) {
	const k = 1000
	for _, x := range []struct {
		name, want string
		talk       func(d *dialog)
	}{
		{"results that could be cleared are not what is in use", "auto_80@140000", func(d *dialog) {
			d.turn(140 * k)
			d.add(d.leaf, `"type":"system","subtype":"microcompact_boundary","microcompactMetadata":{"trigger":"auto","preTokens":61200,"tokensSaved":23050}`)
			d.turn(118 * k)
			d.turn(141 * k)
		}},
		{"a window that was asked for", "", func(d *dialog) {
			d.add(d.leaf, `"type":"attachment","attachment":{"type":"model","identity":{"modelId":"claude-haiku-4-5[1m]"}}`)
			d.turn(134 * k)
			d.turn(155 * k)
		}},
		{"a window that was chosen, and another one", "auto_80@150000", func(d *dialog) {
			d.add(d.leaf, `"type":"system","subtype":"local_command","content":"<local-command-stdout>Set model to Haiku (1M context)</local-command-stdout>"`)
			d.turn(134 * k)
			d.add(d.leaf, `"type":"system","subtype":"local_command","content":"<local-command-stdout>Set model to Haiku</local-command-stdout>"`)
			d.turn(150 * k)
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			d := newDialog()
			x.talk(d)
			var pieces detection
			for i := range d.lines {
				pieces.read(d, i, i+1)
				pieces.restart(t)
			}
			got := pieces.triggers()
			kit.Check(t, got == x.want, "got  %s\nwant %s", got, x.want)
		})
	}
}
