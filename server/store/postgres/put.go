package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/lines"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// pgPatience is how long a group of batches is tried: a little less than clients wait for an answer, which is this and
// a second for each MiB.
const pgPatience = 25 * time.Second

// Put implements server.Ingester. Groups are written by several connections at once. While the database fails over, a
// batch waits and is tried again: repeating one changes nothing.
func (s *Store) Put(ctx context.Context, b *server.Batch) error {
	s.begin()
	blocks, err := s.lines.Pack(b)
	if err != nil {
		return fmt.Errorf("store batch: %w", err)
	}
	return s.Tier.Retry(ctx, func() error { return s.queue.Put(ctx, b, blocks, s.writeGroup) })
}

// writeGroup writes a group in one transaction, and those batches in a later one of whose streams it has several. All
// share one patience: what comes later in a stream is not tried once the database did not take what comes before.
func (s *Store) writeGroup(group []*lines.Job) {
	patience := s.patience
	for _, j := range group {
		patience += time.Duration(j.Bytes>>20) * time.Second
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// Two servers that lock streams in one order can't wait for each other.
	slices.SortStableFunc(group, func(a, b *lines.Job) int { return compareStreams(a.Batch, b.Batch) })
	for len(group) > 0 {
		var first, rest []*lines.Job
		for i, j := range group {
			if i > 0 && compareStreams(group[i-1].Batch, j.Batch) == 0 {
				rest = append(rest, j)
			} else {
				first = append(first, j)
			}
		}
		s.writeTogether(ctx, first)
		group = rest
	}
}

// writeTogether writes batches of different streams in one transaction. When that fails for good every batch is tried
// alone, so that a batch which cannot be stored does not take others with it.
func (s *Store) writeTogether(ctx context.Context, group []*lines.Job) {
	done, err := s.transact(ctx, group)
	if err == nil || len(group) == 1 || again(err) {
		s.answerGroup(group, done, err)
		return
	}
	for _, j := range group {
		done, err := s.transact(ctx, []*lines.Job{j})
		s.answerGroup([]*lines.Job{j}, done, err)
	}
}

func compareStreams(a, b *server.Batch) int {
	return cmp.Or(strings.Compare(a.Head.SessionID, b.Head.SessionID), cmp.Compare(a.Owner, b.Owner),
		strings.Compare(a.Head.Machine, b.Head.Machine))
}

// answerGroup answers a group's jobs and announces its changes.
func (s *Store) answerGroup(group []*lines.Job, done []stored, err error) {
	for i, j := range group {
		h := &j.Batch.Head
		switch {
		case err != nil:
			j.Done <- fmt.Errorf("store batch: %w", err)
		case done[i].refused != nil:
			j.Done <- fmt.Errorf("store batch: %w", done[i].refused)
		case done[i].Stream == 0:
			j.Done <- fmt.Errorf("store batch: session %q: %w", h.SessionID, server.ErrForgotten)
		default:
			s.notices.tell(server.Change{
				Stream: done[i].Stream, SessionID: h.SessionID, Machine: h.Machine, Owner: j.Batch.Owner,
				Project: cmp.Or(sqlstore.CleanText(h.ProjectHash), done[i].Project), Generation: h.Generation,
				From: done[i].written.From, To: done[i].written.To, At: j.Batch.Received,
			})
			j.Done <- nil
		}
	}
}

// transact stores a group and returns once it is durable.
func (s *Store) transact(ctx context.Context, group []*lines.Job) (done []stored, err error) {
	err = s.withTx(ctx, func(tx pgx.Tx) error {
		admitted, refused, err := admitGroup(ctx, tx, group)
		if err != nil {
			return err
		}
		written, err := s.storeGroup(ctx, tx, admitted)
		if err != nil {
			return err
		}
		var known []*lines.Job
		for i, j := range admitted {
			if written[i].Stream != 0 {
				known = append(known, j)
			}
		}
		if err := s.repositories.Note(ctx, dialect{tx}, lines.Batches(known)); err != nil {
			return err
		}
		done = make([]stored, len(group))
		for i := range group {
			if done[i].refused = refused[i]; refused[i] == nil {
				done[i], written = written[0], written[1:]
			}
		}
		return nil
	})
	return done, err
}

// admitGroup finds the batches that exceed no limit of their users. refused has an error for each of the others, in
// the order of group.
func admitGroup(ctx context.Context, tx pgx.Tx,
	group []*lines.Job) (admitted []*lines.Job, refused []error, err error) {
	refused = make([]error, len(group))
	admission := sqlstore.NewAdmission(dialect{tx})
	if err := lockUsers(ctx, tx, group); err != nil {
		return nil, nil, err
	}
	for i, j := range group {
		err := admission.Admit(ctx, sqlstore.BatchWrite(j.Batch))
		switch {
		case errors.Is(err, server.ErrOverQuota):
			refused[i] = err
		case err != nil:
			return nil, nil, err
		default:
			admitted = append(admitted, j)
		}
	}
	return admitted, refused, nil
}

// lockUsers locks the users with limits whose batches a group has, in one order for all servers.
func lockUsers(ctx context.Context, tx pgx.Tx, group []*lines.Job) error {
	var users []int64
	for _, j := range group {
		if j.Batch.Quota != (server.Quota{}) {
			users = append(users, j.Batch.Owner)
		}
	}
	slices.Sort(users)
	for _, user := range slices.Compact(users) {
		if err := (dialect{tx}).Hold(ctx, sqlstore.HeldQuota, user); err != nil {
			return err
		}
	}
	return nil
}

// stored is what a batch met, and what it did.
type stored struct {
	Stream  int64        // 0: the session was forgotten
	Project string       // of the stream
	Masked  int64        // how often something of the stream was masked
	End     sqlstore.End // where its newest generation ended
	To      int64        // one past the highest line of the batch's generation

	Behind bool // something was stored elsewhere than at the end

	changed int64 // count of the ledger
	known   bool
	refused error // exceeds a limit; nothing else counts
	written sqlstore.Written
}

// place is where the lines of a job go.
func (x *stored) place(j *lines.Job) lines.Place {
	return lines.Place{Owner: j.Batch.Owner, Stream: x.Stream, Epoch: x.End.Epoch, Generation: j.Batch.Head.Generation}
}

// storeGroup writes batches of different streams in a transaction.
func (s *Store) storeGroup(ctx context.Context, tx pgx.Tx, group []*lines.Job) ([]stored, error) {
	done, err := enter(ctx, tx, group)
	for i, j := range group {
		if err == nil && done[i].Stream != 0 {
			of := sqlstore.OwnedStream{Stream: done[i].Stream, Owner: j.Batch.Owner}
			err = done[i].End.CheckFront(ctx, dialect{tx}, of, &j.Batch.Head)
		}
	}
	if err == nil {
		err = s.writeLines(ctx, tx, group, done)
	}
	// Of two reasons to refuse a batch the ledger's comes first: what the writer learns from it covers the other.
	if _, refused := errors.AsType[*server.StreamError](err); refused {
		for _, j := range group {
			if ledger := s.CheckWrite(ctx, dialect{tx}, j.Batch.Owner, &j.Batch.Head); ledger != nil {
				return nil, errors.Join(ledger, err)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	for i, j := range group {
		d := &done[i]
		d.Behind = d.Stream != 0 && d.End.Behind(&j.Batch.Head, d.written)
	}
	return done, s.finish(ctx, tx, group, done)
}
