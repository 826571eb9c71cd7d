package derive

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
)

const (
	maxResent = 1000 // checkpoints of a transcript: the state keeps no more
	batchSize = 100  // checkpoints in a batch that is sent again
)

// addToEffects stores checkpoints, and sends them to the server of the session's lines.
func addToEffects(s *FoldStep, list []projection.Checkpoint) error {
	if len(list) == 0 {
		return nil
	}
	items, err := encode(list)
	if err != nil {
		return err
	}
	s.Effects.Checkpoints = append(s.Effects.Checkpoints, list...)
	s.Effects.Batches = append(s.Effects.Batches, s.Packer.Checkpoints(items))
	return nil
}

// Stored are the checkpoints in the state.
type Stored struct{ Projections *projection.DB }

// Batches returns all checkpoints of a transcript, oldest first, for a server that lacks them.
func (s Stored) Batches(ctx context.Context, p *outbox.Packer, id tail.FileID) (batches []outbox.Batch, err error) {
	list, _, err := s.Projections.Checkpoints.List(ctx, id, 0, maxResent)
	if err != nil {
		return nil, err
	}
	slices.Reverse(list)
	for some := range slices.Chunk(list, batchSize) {
		items, err := encode(some)
		if err != nil {
			return nil, err
		}
		batches = append(batches, p.Checkpoints(items))
	}
	return batches, nil
}

// Resend queues the checkpoints of every transcript whose lines go to dest. Call it when a server that accepted lines
// begins to accept checkpoints: checkpoints queued earlier may have been withheld. The server ignores those that it
// already has.
func (s Stored) Resend(ctx context.Context, dest string) error {
	facts, err := s.Projections.State.Files.Routings(ctx)
	if err != nil {
		return fmt.Errorf("resend checkpoints: %w", err)
	}
	packer := outbox.NewPacker()
	for id, f := range facts {
		if f.Dest != dest || f.Stream.Parent != "" {
			continue
		}
		batches, err := s.Batches(ctx, packer, id)
		if err == nil && len(batches) > 0 {
			_, err = s.Projections.Commit(ctx, []projection.Derivation{{File: id, Batches: batches}})
		}
		if err != nil {
			return fmt.Errorf("resend checkpoints: %w", err)
		}
	}
	return nil
}

// item is an element of POST /api/checkpoints.
type item struct {
	control.Checkpoint
	Generation uint32 `json:"generation"`
	Line       int64  `json:"line"`
}

func encode(list []projection.Checkpoint) ([]json.RawMessage, error) {
	items := make([]json.RawMessage, 0, len(list))
	for i := range list {
		c := &list[i]
		text, err := json.Marshal(item{wireCheckpoint(c), c.Generation, c.Line})
		if err != nil {
			return nil, fmt.Errorf("encode checkpoint: %w", err)
		}
		items = append(items, text)
	}
	return items, nil
}
