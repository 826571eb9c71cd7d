//go:build unix

package e2e

import (
	"testing"
	"time"
)

// TestNewServerVersion: a server refuses a line that the next version of it takes. The dead letter is sent again by
// itself, and not before: the same version would refuse it again.
func TestNewServerVersion(t *testing.T) {
	w := aloneWorld(t)
	next := func(version string, flags ...string) {
		w.exact.proc.MustStop(t)
		w.exact.version, w.exact.flags = version, flags
		w.exact.start() // the gate asks for its address each time
	}
	next("1.0.0", "--max-body", "256KiB")
	c, path := w.conversation(3100)
	w.add(path, append(c.even(5, 2000), c.even(1, 400<<10)...))
	w.start()
	line := func() { w.add(path, c.even(1, 2000)) }
	dead := func() int64 { return w.status().Outbox.Dead }
	eventually(t, "the line is a dead letter", 2*time.Minute, func() bool { line(); return dead() == 1 })
	next("1.0.0")
	before := w.sent()
	line()
	w.sync()
	if w.sent() == before || dead() != 1 {
		t.Errorf("%d dead letters with the same version", dead())
	}
	next("1.0.1")
	line()
	w.sync()
	if dead() != 0 {
		t.Errorf("%d dead letters after the new version", dead())
	}
	w.same(c.session, path)
	w.verified()
}
