package reconcile

import (
	"context"

	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/outbox/ledger"
)

// Check asks a server for its ledger. If it is not the one that is known here, Check returns once both were compared.
// Without it a server that went back in time, or a daemon that did, is noticed at the next write, and there may be none
// for long. A server that cannot be asked is not waited for: its error is returned at once.
func (r *Reconciler) Check(ctx context.Context, dest string) error {
	for {
		known, writer, err := r.Servers.Ledger(ctx, dest)
		if known.Store == "" || writer == "" {
			return err // it keeps no ledger, or nothing was ever sent
		}
		at, err := r.Servers.Reader(dest).Ledger(ctx, r.Origin.Machine, known.Count)
		if err != nil {
			return err
		}
		code := judge(&at, &known, writer)
		if code == "" {
			return nil
		}
		compared := r.await(dest)
		if !r.Servers.StepBack(dest, code, writer) {
			continue // compared since it was asked
		}
		select {
		case <-compared:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// judge returns the code with which a server whose ledger is at would refuse a write of an incarnation that knows
// another one; "" when it would not. Writes of this incarnation may be on their way.
func judge(at *remote.Ledger, known *ledger.Ledger, writer string) string {
	switch {
	case at.Store != known.Store:
		return ledger.CodeOtherStore
	case at.Count < known.Count:
		return ledger.CodeStoreBehind
	case at.Writer == writer, at.Writer == known.Writer && at.Count == known.Count:
		return ""
	case known.Writer == writer:
		return ledger.CodeWriterReplaced
	}
	return ledger.CodeWriterBehind
}

// await returns a channel that is closed when a server was compared.
func (r *Reconciler) await(dest string) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	done := make(chan struct{})
	r.waiting[dest] = append(r.waiting[dest], done)
	return done
}

// release ends the waiting of Check.
func (r *Reconciler) release(dest string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, done := range r.waiting[dest] {
		close(done)
	}
	delete(r.waiting, dest)
}
