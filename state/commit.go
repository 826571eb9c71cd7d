package state

import (
	"context"
	"errors"
	"fmt"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/tail"
)

// Step is the one durable move of a file: the cursor goes from Prev to Tracked.Cursor, and what was read in between
// enters the outbox, together or not at all. A crash therefore neither skips a line nor queues one twice: either the
// cursor still stands before it, or the outbox has it.
type Step struct {
	Prev    tail.Cursor  // must equal the stored cursor, else the step is left out (tail.ErrStale)
	From    tail.Cursor  // where reading began; a rewind when it differs from Prev: marks beyond From.Offset are cut
	Tracked tail.Tracked // what is stored; its Cursor is the new one
	Marks   []tail.Mark
	Routing Routing
	Batches []outbox.Batch // get their Seq here
}

// Commit makes steps durable, in one transaction with those of other callers. It returns one error for each step: nil,
// or tail.ErrStale for a step that was left out because the stored cursor is not its Prev. An error for all means that
// nothing happened. Batches get their Seq.
func (db *DB) Commit(ctx context.Context, steps []Step) ([]error, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	var size int64
	for i := range steps {
		for j := range steps[i].Batches {
			size += int64(len(steps[i].Batches[j].Frame))
		}
	}
	errs := make([]error, len(steps))
	err := db.Transact(ctx, size, func(t *Tx) error {
		for i := range steps {
			errs[i] = t.step(&steps[i])
			if errs[i] != nil && !errors.Is(errs[i], tail.ErrStale) {
				return errs[i]
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return errs, nil
}

// step moves one file. tail.ErrStale: it was left out, and nothing of it was written. The comparison of the cursor is
// what makes a step safe to repeat: after an error the caller may not know whether the disk has it, and a second try of
// one that succeeded is stale.
func (t *Tx) step(s *Step) error {
	id := s.Tracked.File.ID
	if err := t.Fault("check"); err != nil {
		return err
	}
	if len(s.Batches) > 0 && s.Routing.Dest == "" {
		return fmt.Errorf("queue lines of %s: no destination", s.Tracked.File.Path)
	}
	old, found, err := t.file(id)
	if err != nil {
		return err
	}
	if old.tracked.Cursor != s.Prev {
		return tail.ErrStale
	}
	if err := t.putPast(s, &old); err != nil {
		return err
	}
	if err := t.moveMarks(s); err != nil {
		return err
	}
	row := fileRow{tracked: s.Tracked, routing: s.Routing}
	row.routing.Stream.ID = uint64(id)
	// An acknowledgement may have counted since the caller read the routing; only a start from line 0 begins anew.
	row.routing.Withheld, row.routing.Plain = old.routing.Withheld, old.routing.Plain
	if s.From != s.Prev {
		row.routing.Withheld = min(row.routing.Withheld, s.Routing.Odd.Before(s.From.Line).Total())
		row.routing.Plain = row.routing.Plain && s.From.Offset > 0
	}
	if row.dest, err = t.Destination(s.Routing.Dest); err != nil {
		return err
	}
	if err := t.putFile("put file", row, old, found); err != nil {
		return err
	}
	for i := range s.Batches {
		if err := t.putBatch(row.dest, uint64(id), &s.Batches[i]); err != nil {
			return err
		}
	}
	return nil
}
