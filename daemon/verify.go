package daemon

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/delivery"
	"github.com/ccship/ccship/daemon/document"
	"github.com/ccship/ccship/daemon/proof"
	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// wireComparer makes the parts that compare on request. Call it after the syncer is made.
func (d *Daemon) wireComparer() {
	d.comparer = &proof.Service{
		Deps: func() proof.Deps {
			return proof.Deps{
				State: d.db, Files: d.tailer, Servers: d.servers, Rules: verifyRules{d, d.router.Rules()},
				Attachments: verifyAttachments{d.attachments, d}, Masking: d.masking, Origin: d.origin, LineCap: d.cfg.LineCap,
				Former: d.name.Former(),
			}
		},
		Syncer: d.syncer,
		Session: func(name string) (string, error) {
			s, err := d.router.Lookup(name, d.tailer)
			return s.Name, err
		},
		Repairer: d.reconciler,
	}
}

// Verify compares the disk with the servers. It uses much memory while it runs.
func (a socket) Verify(ctx context.Context, req control.VerifyRequest,
	progress func(control.VerifyProgress)) (control.VerifyReport, error) {
	defer a.memoryUsed.Store(true)
	report, err := a.comparer.Verify(ctx, req, progress)
	if err == nil && req.Session == "" {
		var clear []string
		for _, t := range report.Transcripts {
			if t.Clear > 0 {
				clear = append(clear, t.Path)
			}
		}
		a.lookElsewhere()
		report.NotReadFiles = a.notRead(a.tailer.Stats())
		err = a.clear.note(ctx, clear, true)
	}
	return report, err
}

// Resend sends lines again that a server lacks or has differently.
func (a socket) Resend(ctx context.Context, req control.ResendRequest) (control.ResendResult, error) {
	return a.comparer.Resend(ctx, req)
}

// verifyRules adapts the daemon to proof.Rules.
type verifyRules struct {
	d     *Daemon
	rules *route.Rules
}

func (r verifyRules) Excluded(facts map[tail.FileID]state.Routing) map[tail.FileID]string {
	excluded := r.d.router.ExcludedOnDisk(r.d.tailer)
	for id, out := range r.d.router.ExcludedNow(facts) {
		excluded[id] = out.Why
	}
	return excluded
}

func (r verifyRules) LeavesOut(f *tail.File, line []byte) bool {
	if f.Kind == tail.History {
		return r.d.router.History.Excludes(f, line)
	}
	if len(r.rules.ExcludeTypes) == 0 {
		return false
	}
	l := transcript.Scan(line)
	return r.rules.LeavesOut(&l)
}

func (r verifyRules) Forget(id tail.FileID) { r.d.forgetter.AtServer(uint64(id)) }

// verifyAttachments adapts the daemon to proof.Attachments.
type verifyAttachments struct {
	*document.Collector
	d *Daemon
}

func (a verifyAttachments) Deliver(ctx context.Context, id tail.FileID) error {
	if err := a.QueueOf(ctx, id); err != nil {
		return err
	}
	return a.d.syncer.Drained(ctx, a.d.db.Outbox.LastSeq())
}

func (a verifyAttachments) Requeue(ctx context.Context, dest string, id tail.FileID) error {
	return a.d.projections.Attachments.Forget(ctx, dest, id)
}

const (
	proofHolds = time.Minute      // another process may listen at the address by then
	askAgain   = 10 * time.Second // after a server proved nothing: it may be starting. Doubles each time
	askLast    = 10 * time.Minute // the longest pause: asking may take a while, and lines wait for the answer
)

// prover returns nil if the server at an address proves that it runs on this machine, for this user. It does not wait
// long.
type prover func(ctx context.Context, server string) error

// proofs remembers which servers proved that they run on this machine. It is safe for concurrent use.
type proofs struct {
	prove prover

	mu    sync.Mutex // held while a server is asked, so that others wait for the answer
	known map[string]proven
}

// proven is a server's answer.
type proven struct {
	here  bool
	at    time.Time
	holds time.Duration // until it is asked again
}

// has reports whether the server at an address runs on this machine. It asks again when the last answer is too old.
func (p *proofs) has(server string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.known[server]
	if age := time.Since(last.at); age >= 0 && age < last.holds {
		return last.here
	}
	now := proven{here: p.prove(context.Background(), server) == nil, at: time.Now()}
	switch {
	case now.here:
		now.holds = proofHolds
	case last.here:
		now.holds = askAgain
	default:
		now.holds = min(max(2*last.holds, askAgain), askLast)
	}
	p.known[server] = now
	return now.here
}

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
