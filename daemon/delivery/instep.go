package delivery

import (
	"context"

	"github.com/ccship/ccship/protocol"
)

// Steps gives the reconciler control over sending: it stops and resumes requests to servers that store something else.
type Steps struct{ *Servers }

// InStep resumes sending to a server that refused because it stores something else. See outbox.Drainer.
func (s Steps) InStep(dest string, at protocol.Ledger, incarnation string) {
	if drainer := s.drainer(dest); drainer != nil {
		drainer.InStep(at, incarnation)
	}
}

// Ledger returns the last known ledger of a server, and the incarnation that writes to it; "" when none does.
func (s Steps) Ledger(ctx context.Context, dest string) (known protocol.Ledger, incarnation string, err error) {
	if err := s.Open(dest); err != nil { // Run may not have begun yet
		return protocol.Ledger{}, "", err
	}
	return s.drainer(dest).Ledger(ctx)
}

// Store returns the id of the database that a server's queue continues; "" when none is known. The state keeps it a
// little later: what was learned there may name the one before.
func (s *Servers) Store(ctx context.Context, dest string) (string, error) {
	if drainer := s.drainer(dest); drainer != nil {
		known, _, err := drainer.Ledger(ctx)
		return known.Store, err
	}
	learned, err := s.State.Outbox.Learned(ctx, dest)
	return learned.Ledger.Store, err
}

// StepBack stops sending to a server until it has been compared, for the reason in code. See outbox.Drainer.
func (s Steps) StepBack(dest, code, incarnation string) bool {
	drainer := s.drainer(dest)
	return drainer != nil && drainer.StepBack(code, incarnation)
}

// StreamInStep is InStep for one stream.
func (s Steps) StreamInStep(dest string, stream uint64) {
	if drainer := s.drainer(dest); drainer != nil {
		drainer.StreamInStep(stream)
	}
}

// Trouble sets why nothing is sent to a server that is out of step; "" when there is no further reason.
func (s Steps) Trouble(dest, why, hint string) {
	if drainer := s.drainer(dest); drainer != nil {
		drainer.Explain(why, hint)
	}
}

// Resend queues again what a server has lost besides lines.
func (s Steps) Resend(ctx context.Context, dest string) error {
	learned, err := s.State.Outbox.Learned(ctx, dest)
	if err != nil || learned.Accepts == 0 {
		return err
	}
	return s.Owner.Accepts(dest, learned.Accepts, true)
}
