package show

import (
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

// Checkpoints and budgets as people see them; nothing in them moves a terminal's cursor.
func TestCheckpointView(t *testing.T) {
	v := View{Now: *showtest.After(0), Zone: time.UTC}
	c := showtest.Checkpoint()
	bare := control.Checkpoint{ID: "cp-ba9876543210", SessionID: "77", TriggerType: "compact", CreatedAt: *showtest.Before(100 * 24 * time.Hour), Summary: "first\nsecond"}
	narrow := v
	narrow.Columns = 60
	list := control.Checkpoints{Checkpoints: []control.Checkpoint{c, bare}, Next: 2}
	text := strings.Join([]string{
		v.Checkpoints(list), narrow.Checkpoints(list), v.Checkpoints(control.Checkpoints{}), v.Checkpoint(control.CheckpointAnswer{Checkpoint: c}),
		v.Checkpoint(control.CheckpointAnswer{Checkpoint: bare}),
		v.Budgets(showtest.Budgets()), v.Budgets(control.Budgets{}),
	}, "---\n")
	kit.Check(t, !strings.ContainsAny(text, "\x1b\u009b"), "an escape sequence is printed")
	showtest.Golden(t, "checkpoints.txt", text)
}
