package daemon

import (
	"context"
	"errors"
	"sync"

	"github.com/ccship/ccship/daemon/delivery"
	"github.com/ccship/ccship/daemon/proof"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/tail"
)

// errRenamed ends serve, so that every part starts again under the machine's new name.
var errRenamed = errors.New("this machine has a new name")

// ownName is this machine's name for the reconciler.
type ownName struct {
	stateDir string
	former   []string
	changed  chan struct{}
	once     sync.Once
}

// Former returns the names before, the last one first.
func (n *ownName) Former() []string { return n.former }

// Change gives this machine a new name and restarts the daemon's parts.
func (n *ownName) Change() error {
	if err := sys.ChangeIdentity(n.stateDir); err != nil {
		return err
	}
	n.once.Do(func() { close(n.changed) })
	return nil
}

// await returns errRenamed once the name has changed.
func (n *ownName) await(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-n.changed:
		return errRenamed
	}
}

// wireReconciler makes the reconciler. former are the names that this machine had before, the last one first.
func (d *Daemon) wireReconciler(former []string) {
	d.name = &ownName{stateDir: d.cfg.StateDir, former: former, changed: make(chan struct{})}
	d.reconciler = proof.NewReconciler(proof.ReconcilerDeps{
		State: d.db, Files: d.tailer, Servers: delivery.Steps{Servers: d.servers}, Rules: rulesInForce{d}, Masking: d.masking,
		Machine: d.name, Origin: d.origin, LineCap: d.cfg.LineCap, Log: d.log,
	})
}

// rulesInForce adapts the daemon to proof.reconcileRules.
type rulesInForce struct{ d *Daemon }

func (r rulesInForce) LeavesOut(f *tail.File, line []byte) bool {
	return verifyRules{r.d, r.d.router.Rules()}.LeavesOut(f, line)
}
