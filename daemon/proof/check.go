package proof

import (
	"context"

	"github.com/ccship/ccship/protocol"
)

// Check asks a server for its ledger. If the ledger is not the one known here, both sides are compared, and Check asks
// again: the database may have been exchanged meanwhile. It finds a server or daemon that was set back in time;
// otherwise only the next write would show that. If the server cannot be asked, Check returns the error at once.
func (r *Reconciler) Check(ctx context.Context, dest string) error {
	for {
		known, writer, err := r.Servers.Ledger(ctx, dest)
		if known.Store == "" || writer == "" {
			return err // the server keeps no ledger, or nothing was ever sent
		}
		at, err := r.Servers.Reader(dest).Ledger(ctx, r.Origin.Machine, known.Count)
		if err != nil {
			return err
		}
		code := judge(&at, &known, writer)
		if code == "" {
			return r.retryLeft(ctx, dest)
		}
		compared := r.await(dest)
		if !r.Servers.StepBack(dest, code, writer) {
			continue // compared since the request
		}
		select {
		case <-compared:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// retryLeft queues what a comparison that did not end left behind as replaced.
func (r *Reconciler) retryLeft(ctx context.Context, dest string) error {
	if r.State.Outbox.Usage().Dead == 0 {
		return nil
	}
	c, err := r.newComparison(ctx, dest)
	if err != nil {
		return err
	}
	return c.retryReplaced(ctx)
}

// judge returns the code with which a server whose ledger is at would refuse a write of an incarnation that knows
// another ledger; "" if it would accept. Writes of this incarnation may be in flight.
func judge(at *protocol.WriteLedger, known *protocol.Ledger, writer string) string {
	switch {
	case known.Doubt:
		return protocol.CodeStoreBehind
	case at.Store != known.Store:
		return protocol.CodeOtherStore
	case at.Count < known.Count, at.Since != "" && known.Token != "" && at.Since != known.Token:
		return protocol.CodeStoreBehind
	case at.Writer == writer, at.Writer == known.Writer && at.Count == known.Count:
		return ""
	case known.Writer == writer:
		return protocol.CodeWriterReplaced
	}
	return protocol.CodeWriterBehind
}

// await returns a channel that is closed once a server was compared.
func (r *Reconciler) await(dest string) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	done := make(chan struct{})
	r.waiting[dest] = append(r.waiting[dest], done)
	return done
}

// release ends the waiting of Check for a server.
func (r *Reconciler) release(dest string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, done := range r.waiting[dest] {
		close(done)
	}
	delete(r.waiting, dest)
}
