package setup

import (
	"testing"

	"github.com/ccship/ccship/daemon/control"
)

// An import is waited for while it can go on. What waits for a server that was named by mistake before is no reason to.
func TestImportGoesOn(t *testing.T) {
	status := func(own string, batches, others, unread int64) control.Status {
		return control.Status{
			Servers: []control.Server{{URL: "own", State: own, Batches: batches}, {URL: "other", State: "retrying", Batches: others}},
			Files:   &control.Files{Tracked: 1, Bytes: 100, ReadBytes: 100 - unread},
		}
	}
	for _, c := range []struct {
		name            string
		reason          string
		status          control.Status
		goesOn, arrived bool
	}{
		{"still reading", "timeout", status("ok", 0, 0, 50), true, false},
		{"still sending", "timeout", status("ok", 7, 0, 0), true, false},
		{"sending beside a server that is gone", "unreachable", status("ok", 7, 3, 0), true, false},
		{"everything is there, but for a server that is gone", "unreachable", status("ok", 0, 3, 0), false, true},
		{"the server went away", "unreachable", status("retrying", 7, 0, 0), false, false},
		{"the key was revoked", "refused_key", status("refused", 7, 0, 0), false, false},
		{"the daemon went away", "unreachable", control.Status{}, false, false},
	} {
		if got := goesOn(control.SyncResult{Reason: c.reason}, c.status); got != c.goesOn || arrived(c.status) != c.arrived {
			t.Errorf("%s: goes on %v, arrived %v", c.name, got, arrived(c.status))
		}
	}
}
