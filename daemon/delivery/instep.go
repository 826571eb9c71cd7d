package delivery

import (
	"context"

	"github.com/ccship/ccship/outbox"
)

// InStep lets a server be sent to again that refused because it stores something else. See outbox.Drainer.
func (s *Servers) InStep(dest string, at outbox.Ledger) {
	if drainer := s.drainer(dest); drainer != nil {
		drainer.InStep(at)
	}
}

// StreamInStep is InStep for one stream.
func (s *Servers) StreamInStep(dest string, stream uint64) {
	if drainer := s.drainer(dest); drainer != nil {
		drainer.StreamInStep(stream)
	}
}

// Trouble shows why nothing is sent to a server that is out of step; "" when there is no reason beyond that.
func (s *Servers) Trouble(dest, why, hint string) {
	if drainer := s.drainer(dest); drainer != nil {
		drainer.Explain(why, hint)
	}
}

// Resend queues again what a server lost beside lines.
func (s *Servers) Resend(ctx context.Context, dest string) error {
	learned, err := s.db.Outbox.Learned(ctx, dest)
	if err != nil || learned.Accepts == 0 {
		return err
	}
	return s.owner.Accepts(dest, learned.Accepts, true)
}
