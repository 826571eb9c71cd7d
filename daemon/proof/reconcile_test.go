package proof

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
)

// names is a machine whose changes of name are counted.
type names struct{ changes int }

func (n *names) Former() []string { return nil }
func (n *names) Change() error    { n.changes++; return nil }

// TestOwnName: the first time that another daemon took over this one takes over again; the second time within an hour
// both are alive, and this one changes its name. A comparison that is repeated is not a second time.
func TestOwnName(t *testing.T) {
	n := &names{}
	r := NewReconciler(ReconcilerDeps{Machine: n, Log: slog.New(slog.DiscardHandler)})
	why := protocol.Refusal{Code: protocol.CodeWriterReplaced}
	for range 3 { // repeated, since it failed
		w, err := r.writer("dest", why)
		kit.Require(t, w != "" && err == nil && n.changes == 0, "writer %q, %v, %d changes", w, err, n.changes)
	}
	r.replaced["dest"] = time.Now() // it succeeded
	_, err := r.writer("dest", why)
	kit.Check(t, errors.Is(err, errNewName) && n.changes == 1, "the second time: %v, %d changes", err, n.changes)
	_, err = r.writer("other", why)
	kit.Check(t, err == nil && n.changes == 1, "another server: %v, %d changes", err, n.changes)
	r.replaced["dest"] = time.Now().Add(-2 * memoryOf)
	_, err = r.writer("dest", why)
	kit.Check(t, err == nil && n.changes == 1, "hours later: %v, %d changes", err, n.changes)
}

// TestNewestRefusalCounts: a comparison that failed does not displace what was asked for meanwhile.
func TestNewestRefusalCounts(t *testing.T) {
	r := NewReconciler(ReconcilerDeps{Log: slog.New(slog.DiscardHandler)})
	r.OutOfStep("dest", protocol.Refusal{Code: protocol.CodeWriterReplaced})
	r.OutOfStep("dest", protocol.Refusal{Code: protocol.CodeOtherBytes, Stream: 7})
	r.again(t.Context(), "dest", protocol.Refusal{Code: protocol.CodeStoreBehind}, errors.New("no answer"))
	got := r.servers["dest"].Code
	kit.Check(t, got == protocol.CodeWriterReplaced && r.streams["dest"][7], "to be compared: %q, streams %v", got, r.streams)
}
