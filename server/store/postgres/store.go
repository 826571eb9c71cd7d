package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ccship/ccship/server/store/lines"

	"github.com/ccship/ccship/server/store/sqlstore"

	"github.com/ccship/ccship/server/store/search"
)

// Store is a store in a PostgreSQL database. Safe for concurrent use, also by several processes.
type Store struct {
	pool   *pgxpool.Pool
	direct *pgx.ConnConfig         // for what needs a session: the schema, listening
	pooled bool                    // pool leads to a pooler in transaction mode
	open   *sqlstore.SnapshotSlots // of snapshots
	doubt  doubts
	// patience is how long a group of batches is retried: pgPatience except in tests.
	patience time.Duration
	notes    []string
	*search.Index
	queue lines.Queue
	lines *lines.Lines
	*lines.Sealer
	*lines.Tier
	sqlstore.Artifacts
	lines.Masks
	sqlstore.Finder
	repositories sqlstore.Repositories
	*sqlstore.Sums
	sqlstore.Keeper
	lines.Policy
	sqlstore.People
	notices *notices
}

// Open opens the database that url names and brings its schema up to date; several processes may do so at once.
// Of several hosts it uses the one that accepts writes. An error that a person can fix is an *OpenError.
func Open(ctx context.Context, url string, how sqlstore.Opening) (*Store, error) {
	w, err := wayOf(url)
	if err != nil {
		return nil, err
	}
	s := &Store{notices: newNotices(), patience: pgPatience, pooled: w.pooled}
	if s.lines, err = lines.New(how.Step); err != nil {
		return nil, err
	}
	config, err := s.configure(w.url)
	if err != nil {
		return nil, err
	}
	direct, err := s.configure(w.direct)
	if err != nil {
		return nil, err
	}
	if s.direct = direct.ConnConfig; s.pooled {
		throughPooler(config)
	}
	most := int(config.MaxConns)
	s.open, s.queue = sqlstore.NewSnapshotSlots(max(1, most/2)), lines.NewQueue(max(1, most/4))
	if err := s.prepare(ctx, s.direct, how); err != nil {
		return nil, explain(err, s.direct)
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, explain(err, config.ConnConfig)
	}
	if err = errors.Join(s.lookPooled(ctx), s.build(ctx, how)); err != nil {
		s.pool.Close()
		return nil, explain(err, config.ConnConfig)
	}
	return s, nil
}

// build makes what runs on the database.
func (s *Store) build(ctx context.Context, how sqlstore.Opening) (err error) {
	db := database{dialect{s.pool}, s}
	if s.Tier, err = lines.OpenCold(ctx, db, s.lines, how); err != nil {
		return err
	}
	s.Sealer, s.Masks = lines.NewSealer(db, s.lines), lines.NewMasks(db, s.lines)
	s.People = sqlstore.NewPeople(db)
	s.find(db)
	s.Keeper = sqlstore.NewKeeper(db)
	s.Policy = lines.NewPolicy(db, s.lines, s.Tier)
	s.Artifacts, err = sqlstore.NewArtifacts(ctx, db, s.Tier)
	return err
}

// find makes what a replica answers too.
func (s *Store) find(db sqlstore.DB) {
	s.Finder, s.Sums = sqlstore.NewFinder(db, selectSession), sqlstore.NewSums(db)
	s.Index = search.New(db, s.lines, &s.Finder)
}

// lookPooled notes what a pooler's way lacks.
func (s *Store) lookPooled(ctx context.Context) error {
	if !s.pooled {
		return nil
	}
	lacking, err := lacksPooled(ctx, s.pool)
	s.notes = append(s.notes, lacking...)
	return err
}

// Close closes the store's connections. Puts and snapshots must have ended.
func (s *Store) Close() error {
	s.Index.Close()
	s.notices.stop()
	s.notices.running.Wait()
	s.pool.Close()
	return nil
}

// Notes returns, one line each, what the database lacks and what works less well because of that.
func (s *Store) Notes() []string { return s.notes }

// withTx runs fn in a transaction, and retries it if that can help; running fn twice must be harmless.
func (s *Store) withTx(ctx context.Context, fn func(pgx.Tx) error) error {
	return s.persist(ctx, func(ctx context.Context) error { return s.try(ctx, classIngest, fn) })
}

// inBackground is withTx for work that nobody waits for: it waits for others' locks less long at a time.
func (s *Store) inBackground(ctx context.Context, fn func(pgx.Tx) error) error {
	return s.persist(ctx, func(ctx context.Context) error { return s.try(ctx, classBackground, fn) })
}

// once is withTx for work that must not run twice: it gives up when it cannot know whether the work was done.
func (s *Store) once(ctx context.Context, fn func(pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, pgPatience)
	defer cancel()
	return s.persist(ctx, func(ctx context.Context) error {
		err := s.try(ctx, classIngest, fn)
		if c, ok := errors.AsType[*commitError](err); ok {
			if _, refused := errors.AsType[*pgconn.PgError](err); !refused {
				return &unsure{c}
			}
		}
		return err
	})
}

// try runs fn in a transaction, with the time limits of a class.
func (s *Store) try(ctx context.Context, c class, fn func(pgx.Tx) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Release()
	tx, err := conn.BeginTx(ctx, s.beginWrite(c))
	if err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	if err := fn(tx); err != nil {
		// A failure of the rollback does not matter: the connection is broken then, and the database rolls back by itself.
		_ = tx.Rollback(context.WithoutCancel(ctx))
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return &commitError{err}
	}
	if err := s.doubt.about(conn.Conn().PgConn()); err != nil {
		return &commitError{err}
	}
	return nil
}

// commitError means that a transaction may or may not be committed.
type commitError struct{ err error }

func (e *commitError) Error() string { return "commit transaction: " + e.err.Error() }
func (e *commitError) Unwrap() error { return e.err }

// unsure is a commitError that must not be retried.
type unsure struct{ err error }

func (e *unsure) Error() string { return "it may be done or not: " + e.err.Error() }
func (e *unsure) Unwrap() error { return e.err }
