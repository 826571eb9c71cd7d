// Package recall answers from what a server has derived: what happened in a session, who touched a file and why, and
// what was done about an error. It quotes what is stored, and asks no model. Each answer has bounded cost, and shows
// only what its scope may see.
package recall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript/session"
)

// Patience is how long one answer may take.
const Patience = 20 * time.Second

// Store is what answers are read from.
type Store interface {
	server.Moments
	server.Provenance
	Find(ctx context.Context, scope server.Scope, q server.SessionQuery) (server.Found, error)
	Groups(ctx context.Context, scope server.Scope, q server.GroupQuery) (server.Groups, error)
	View(ctx context.Context, scope server.Scope, ref server.Ref) (server.Snapshot, error)
	SummaryOf(ctx context.Context, stream int64) (server.Summary, error)
	Usage(ctx context.Context, scope server.Scope, q server.UsageQuery) ([]server.UsageRow, error)
	Checkpoints(ctx context.Context, scope server.Scope, q server.CheckpointQuery) (server.CheckpointPage, error)
	Documents(ctx context.Context, scope server.Scope, ref server.Ref) ([]server.Document, error)
}

// within runs fn for as long as an answer may take. server.ErrBusy when that is not enough.
func within(ctx context.Context, fn func(context.Context) error) error {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	err := fn(ctx)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && caller.Err() == nil {
		return fmt.Errorf("answer within %s: %w", Patience, server.ErrBusy)
	}
	return err
}

// decode reads moments as they are stored. One that cannot be read is left out: it is derived again some day.
func decode(stored []server.Moment) []session.Moment {
	out := make([]session.Moment, 0, len(stored))
	for _, x := range stored {
		var m session.Moment
		if json.Unmarshal(x.Data, &m) == nil {
			m.Line, m.Part = x.Line, int(x.Part)
			out = append(out, m)
		}
	}
	return out
}
