package daemon

import (
	"context"
	"fmt"
	"slices"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

const (
	mostAgain  = 1000 // checkpoints of a transcript: it can have no more
	againBatch = 100
)

// checkpointBatches are all of a transcript's checkpoints, oldest first, for a server that does not have them.
func checkpointBatches(ctx context.Context, db *state.DB, p *outbox.Packer, id tail.FileID) (batches []outbox.Batch, err error) {
	list, _, err := db.Checkpoints(ctx, id, 0, mostAgain)
	if err != nil {
		return nil, err
	}
	slices.Reverse(list)
	for some := range slices.Chunk(list, againBatch) {
		items, err := checkpointItems(some)
		if err != nil {
			return nil, err
		}
		batches = append(batches, p.Checkpoints(items))
	}
	return batches, nil
}

// sendCheckpointsAgain queues the checkpoints of every transcript whose lines go to a server that begins to take
// checkpoints after it took lines: those that were queued before may have been withheld. A server that has them keeps
// one of each.
func (d *Daemon) sendCheckpointsAgain(ctx context.Context, dest string) error {
	facts, err := d.db.LoadFacts(ctx)
	if err != nil {
		return fmt.Errorf("queue checkpoints again: %w", err)
	}
	packer := outbox.NewPacker()
	for id, f := range facts {
		if f.Dest != dest || f.Stream.Parent != "" {
			continue
		}
		batches, err := checkpointBatches(ctx, d.db, packer, id)
		if err == nil && len(batches) > 0 {
			_, err = d.db.Derive(ctx, []state.Derivation{{File: id, Batches: batches}})
		}
		if err != nil {
			return fmt.Errorf("queue checkpoints again: %w", err)
		}
	}
	return nil
}

// takeCheckpoints adds the checkpoints of a transcript whose lines go to another server from here on.
func (r *relay) takeCheckpoints(batches []outbox.Batch, id tail.FileID, p *outbox.Packer) []outbox.Batch {
	again, err := checkpointBatches(context.Background(), r.db, p, id)
	if err != nil {
		r.log.Warn("checkpoints of a session that goes to another server now are not sent there", "err", err)
	}
	return append(batches, again...)
}
