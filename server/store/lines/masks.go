package lines

import (
	"context"
	"errors"
	"fmt"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/sqlstore"
	"github.com/ccship/ccship/transcript/redact"
)

// maskDatabase is what the two databases do differently.
type maskDatabase interface {
	// Write runs fn in a transaction, which may be retried: fn then starts afresh, also to bring what is cold before.
	// Removed bytes are overwritten as far as
	// the database can.
	Write(ctx context.Context, fn func(sqlstore.Dialect) error) error
	// ClearDerived removes what is derived from a stream's lines.
	ClearDerived(ctx context.Context, d sqlstore.Dialect, owner, stream int64) error
	// Scrub implements server.Masker.
	Scrub(ctx context.Context, progress func(done, total int64)) error
}

// Masks implements server.Masker. It is set once, when a store opens.
type Masks struct {
	reader sqlstore.Dialect
	db     maskDatabase
	held   *Lines
	files  maskFiles
	notify func(server.Change)
}

// maskFiles has contents of files that the database does not have.
type maskFiles interface {
	// Whole returns nil if all of a file is in the database. Its error ends the transaction, which begins again once the
	// file is there.
	Whole(ctx context.Context, d sqlstore.Dialect, owner, blob int64) error
}

// NewMasks returns the masks of a store. notify announces a durable change.
func NewMasks(reader sqlstore.Dialect, db maskDatabase, held *Lines, files maskFiles,
	notify func(server.Change)) Masks {
	return Masks{reader, db, held, files, notify}
}

// Scrub implements server.Masker.
func (m *Masks) Scrub(ctx context.Context, progress func(done, total int64)) error {
	if err := m.db.Scrub(ctx, progress); err != nil {
		return fmt.Errorf("overwrite what was masked: %w", err)
	}
	return nil
}

// Mask implements server.Masker.
func (m *Masks) Mask(ctx context.Context, in *server.Masking) (server.Masked, error) {
	var t maskTx
	var done server.Masked
	err := m.db.Write(ctx, func(d sqlstore.Dialect) (err error) {
		done = server.Masked{}
		t = maskTx{Dialect: d, in: in, held: m.held, files: m.files}
		if err := d.Hold(ctx, sqlstore.HeldStream, in.Stream); err != nil {
			return err
		}
		if err := t.load(ctx); err != nil {
			return err
		}
		if done, err = t.all(ctx); err != nil || !done.Any() {
			return err
		}
		if done.Lines > 0 {
			if err := m.db.ClearDerived(ctx, d, t.owner, in.Stream); err != nil {
				return fmt.Errorf("remove what is derived: %w", err)
			}
		}
		return t.record(ctx, done)
	})
	if errors.Is(err, redact.ErrNoToken) {
		err = fmt.Errorf("%w: %w", server.ErrNoToken, err)
	}
	if err != nil {
		return server.Masked{}, fmt.Errorf("mask: %w", err)
	}
	if done.Any() {
		m.notify(t.change)
	}
	return done, nil
}

// Maskings implements server.Masker.
func (m *Masks) Maskings(ctx context.Context, scope server.Scope) ([]server.MaskedSession, error) {
	var f sqlstore.Filter
	f.Own(scope)
	out, err := sqlstore.List(ctx, m.reader, `
SELECT s.owner, s.session_id, s.machine, m.asked_by, m.at, m.lines, m.checkpoints, m.files
FROM maskings m JOIN streams s ON s.owner = m.owner AND s.id = m.stream `+f.Where()+`
ORDER BY m.at DESC, s.id, m.asked_by`, f.Args,
		func(row sqlstore.Scanner) (x server.MaskedSession, err error) {
			var at int64
			n := &x.Masked
			err = row.Scan(&x.Owner, &x.SessionID, &x.Machine, &x.By, &at, &n.Lines, &n.Checkpoints, &n.Files)
			x.At = sqlstore.Moment(at)
			return x, err
		})
	if err != nil {
		return nil, fmt.Errorf("list what was masked: %w", err)
	}
	return out, nil
}

// ListMasks returns the lines of an epoch that the server masked by itself.
func ListMasks(ctx context.Context, d sqlstore.Dialect, at Place) ([]server.MaskedLine, error) {
	out, err := sqlstore.List(ctx, d, `
SELECT generation, line FROM masked_lines WHERE owner = ? AND stream = ? AND epoch = ? ORDER BY generation, line`,
		[]any{at.Owner, at.Stream, at.Epoch}, func(row sqlstore.Scanner) (l server.MaskedLine, err error) {
			return l, row.Scan(&l.Generation, &l.Line)
		})
	if err != nil {
		return nil, fmt.Errorf("list masked lines: %w", err)
	}
	return out, nil
}

// tokens are a masking's, as package redact has them.
func tokens(list []server.Token) []redact.Token {
	out := make([]redact.Token, 0, len(list))
	for _, t := range list {
		out = append(out, redact.Token(t))
	}
	return out
}
