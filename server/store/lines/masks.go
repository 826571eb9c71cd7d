package lines

import (
	"context"
	"errors"
	"fmt"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/sqlstore"
	"github.com/ccship/ccship/transcript/redact"
)

// Masks implements server.Masker but for Scrub. It is set once, when a store opens.
type Masks struct {
	db    sqlstore.Writer
	lines *Lines
}

// NewMasks returns the masks of a store.
func NewMasks(db sqlstore.DB, lines *Lines) Masks {
	return Masks{sqlstore.Writer{DB: db, How: sqlstore.Erase}, lines}
}

// Mask implements server.Masker.
func (m *Masks) Mask(ctx context.Context, in *server.Masking) (protocol.Masked, error) {
	var t maskTx
	var done protocol.Masked
	err := m.db.Write(ctx, func(d sqlstore.Dialect) (err error) {
		done = protocol.Masked{}
		t = maskTx{Dialect: d, in: in, lines: m.lines}
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
			if err := sqlstore.ClearMasked(ctx, d, sqlstore.OwnedStream{Stream: in.Stream, Owner: t.owner}); err != nil {
				return fmt.Errorf("remove what is derived: %w", err)
			}
			if err := sqlstore.ScrubLater(ctx, d); err != nil {
				return err
			}
		}
		return t.record(ctx, done)
	})
	if errors.Is(err, redact.ErrNoToken) {
		err = fmt.Errorf("%w: %w", server.ErrNoToken, err)
	}
	if err != nil {
		return protocol.Masked{}, fmt.Errorf("mask: %w", err)
	}
	if done.Any() {
		m.db.Tell(t.change)
	}
	return done, nil
}

// Maskings implements server.Masker.
func (m *Masks) Maskings(ctx context.Context, scope server.Scope) ([]server.MaskedSession, error) {
	var f sqlstore.Filter
	f.Own(scope)
	out, err := sqlstore.List(ctx, m.db, `
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
	return out, sqlstore.Wrap(err, "list what was masked")
}
