package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ccship/ccship/server"
)

// Postgres is a store in a PostgreSQL database. Safe for concurrent use, also by several processes.
type Postgres struct {
	pool  *pgxpool.Pool
	open  *places // of snapshots
	doubt doubts
	// patience is how long a group of batches is retried: pgPatience except in tests.
	patience time.Duration
	// trigrams is the kind of index on texts. It and notes are immutable once open.
	trigrams bool
	notes    []string
	queue
	artifacts
	people
	notices *notices
}

// OpenPostgres opens the database that url names and brings its schema up to date; several processes may do so at once.
// Of several hosts it uses the one that accepts writes. An error that a person can fix is an *OpenError.
func OpenPostgres(ctx context.Context, url string) (*Postgres, error) {
	s := &Postgres{notices: newNotices(), patience: pgPatience}
	config, err := s.configure(url)
	if err != nil {
		return nil, err
	}
	most := int(config.MaxConns)
	s.open = newPlaces(max(1, most/2))
	s.queue = newQueue(max(1, most/4))
	if err := s.prepare(ctx, config.ConnConfig); err != nil {
		return nil, explain(err, config.ConnConfig)
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, explain(err, config.ConnConfig)
	}
	ledgers, err := openLedgers(ctx, pgDialect{s.pool})
	if err != nil {
		s.pool.Close()
		return nil, explain(err, config.ConnConfig)
	}
	s.people = people{pgDialect{s.pool}}
	s.artifacts = artifacts{reader: pgDialect{s.pool}, ledgers: &ledgers, writer: s.writeArtifacts, notify: s.tell}
	return s, nil
}

// tell announces a change to artifacts.
func (s *Postgres) tell(c server.Change) {
	s.begin()
	s.notices.tell(c)
}

// Close closes the store's connections. Puts and snapshots must have ended.
func (s *Postgres) Close() error {
	s.notices.stop()
	s.notices.running.Wait()
	s.pool.Close()
	return nil
}

// Notes returns, one line each, what the database lacks and what works less well because of that.
func (s *Postgres) Notes() []string { return s.notes }

// Version returns the schema's version.
func (s *Postgres) Version(ctx context.Context) (v int64, err error) {
	err = s.pool.QueryRow(ctx, `SELECT max(version_id) FROM goose_db_version WHERE is_applied`).Scan(&v)
	if err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	return v, nil
}

// withTx runs fn in a transaction, and retries it if that can help; running fn twice must be harmless.
func (s *Postgres) withTx(ctx context.Context, fn func(pgx.Tx) error) error {
	return s.persist(ctx, func(ctx context.Context) error { return s.try(ctx, fn) })
}

// writeArtifacts is withTx for artifacts: nothing is forgotten meanwhile.
func (s *Postgres) writeArtifacts(ctx context.Context, fn func(dialect) error) error {
	ctx, cancel := context.WithTimeout(ctx, pgPatience)
	defer cancel()
	return s.withTx(ctx, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(planByKey)
		batch.Queue(lockForgotten)
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return fmt.Errorf("begin transaction: %w", err)
		}
		return fn(pgDialect{tx})
	})
}

// once is withTx for work that must not run twice: it gives up when it cannot know whether the work was done.
func (s *Postgres) once(ctx context.Context, fn func(pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, pgPatience)
	defer cancel()
	return s.persist(ctx, func(ctx context.Context) error {
		err := s.try(ctx, fn)
		if c, ok := errors.AsType[*commitError](err); ok {
			if _, refused := errors.AsType[*pgconn.PgError](err); !refused {
				return &unsure{c}
			}
		}
		return err
	})
}

// try runs fn in a transaction.
func (s *Postgres) try(ctx context.Context, fn func(pgx.Tx) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Release()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite})
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
