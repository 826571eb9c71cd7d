package lines

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// View is a read transaction in which a snapshot is opened.
type View struct {
	On    sqlstore.Dialect
	Query string       // see sqlstore.NewFinder
	End   func() error // ends it
}

// Snapshot implements server.Snapshot.
type Snapshot struct {
	View
	lines       *Lines
	at          Place // but for the generation
	session     server.Session
	epochs      []server.Epoch
	generations []server.Generation
}

// Open opens a snapshot in a view. It ends the view when it fails.
func (x *Lines) Open(ctx context.Context, v View, scope server.Scope, ref server.Ref) (server.Snapshot, error) {
	n := &Snapshot{View: v, lines: x}
	if err := n.load(ctx, scope, ref); err != nil {
		return nil, errors.Join(err, v.End())
	}
	return n, nil
}

func (n *Snapshot) load(ctx context.Context, scope server.Scope, ref server.Ref) error {
	stream := ref.Stream
	if !scope.All || stream == 0 || ref.Owner == 0 || ref.Epoch != "" { // else a deriver's, that knows it
		x, err := sqlstore.Resolve(ctx, n.On, scope, ref, sqlstore.WithLines(ref))
		if err != nil {
			return err
		}
		stream = x.Stream
	}
	err := n.On.Query(ctx, n.Query+`WHERE s.id = ?`, []any{ref.Epoch, sqlstore.Key(ref.Epoch), stream},
		func(row sqlstore.Scanner) error {
			found, epoch, err := sqlstore.ScanSession(row)
			n.session = found.Session
			n.at = Place{Owner: found.Owner, Stream: found.ID, Epoch: epoch}
			return err
		})
	if err == nil && (n.session.ID == 0 || ref.Owner != 0 && ref.Owner != n.session.Owner) {
		err = server.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("session %q: %w", ref.SessionID, err)
	}
	err = n.On.Query(ctx, `
SELECT e.rank, e.name, e.first_seen, coalesce(g.generation, -1), coalesce(g.rewound_to, 0), coalesce(g.end_line, 0),
  coalesce(g.end_offset, 0), coalesce(g.eof_newline, false), coalesce(g.first_seen, 0)
FROM epochs e LEFT JOIN generations g ON g.owner = e.owner AND g.stream = e.stream AND g.epoch = e.rank AND e.rank = ?
WHERE e.owner = ? AND e.stream = ? ORDER BY e.rank DESC, g.generation`, []any{n.at.Epoch, n.at.Owner, n.at.Stream},
		n.addEpoch)
	return sqlstore.Wrap(err, "read epochs")
}

// addEpoch adds a generation of the chosen epoch, or another epoch.
func (n *Snapshot) addEpoch(row sqlstore.Scanner) error {
	var e server.Epoch
	var g server.Generation
	var seen, first int64
	err := row.Scan(&e.Rank, &e.Name, &seen, &g.Number, &g.RewoundTo, &g.EndLine, &g.EndOffset, &g.EOFNewline, &first)
	e.ID, e.First, g.First = e.Rank, time.UnixMicro(seen).UTC(), time.UnixMicro(first).UTC()
	if last := len(n.epochs) - 1; last < 0 || n.epochs[last].ID != e.ID {
		n.epochs = append(n.epochs, e)
	}
	if g.Number >= 0 {
		n.generations = append(n.generations, g)
	}
	return err
}

// Session implements server.Snapshot.
func (n *Snapshot) Session() server.Session { return n.session }

// Epochs implements server.Snapshot.
func (n *Snapshot) Epochs() []server.Epoch { return n.epochs }

// Generations implements server.Snapshot.
func (n *Snapshot) Generations() []server.Generation { return n.generations }

// Count implements server.Snapshot.
func (n *Snapshot) Count(ctx context.Context, s server.Span) (lines, oversize int64, err error) {
	a, err := n.lines.Measure(ctx, n.On, n.at, s)
	return a.Lines, a.Oversize, err
}

// Lines implements server.Snapshot.
func (n *Snapshot) Lines(ctx context.Context, s server.Span, yield func(server.Line) error) error {
	return n.lines.Read(ctx, n.On, n.at, s, yield)
}

// Replaced implements server.Snapshot.
func (n *Snapshot) Replaced(ctx context.Context, s server.Span, yield func(server.Line, time.Time) error) error {
	at := Place{n.at.Owner, n.at.Stream, n.at.Epoch, s.Generation}
	err := n.On.Query(ctx, `SELECT line, kind, raw, replaced FROM superseded`+ofPlace+`
AND line >= ? AND line < ? ORDER BY line, replaced`, at.args(s.From, s.To),
		func(row sqlstore.Scanner) error {
			var l server.Line
			var kind, at int64
			if err := row.Scan(&l.Index, &kind, &l.Raw, &at); err != nil {
				return err
			}
			l.Kind = server.Kind(kind)
			return yield(l, sqlstore.Moment(at))
		})
	return sqlstore.Wrap(err, "read replaced lines")
}

// Retired implements server.Snapshot.
func (n *Snapshot) Retired(ctx context.Context, s server.Span, hashes bool,
	yield func(*server.RetiredRun) error) error {
	at := Place{n.at.Owner, n.at.Stream, n.at.Epoch, s.Generation}
	return ReadRetired(ctx, n.On, RetiredQuery{at, s.From, s.To, hashes}, yield)
}

// Masked implements server.Snapshot.
func (n *Snapshot) Masked(ctx context.Context) ([]server.MaskedLine, error) {
	out, err := sqlstore.List(ctx, n.On, `
SELECT generation, line FROM masked_lines WHERE owner = ? AND stream = ? AND epoch = ? ORDER BY generation, line`,
		[]any{n.at.Owner, n.at.Stream, n.at.Epoch}, func(row sqlstore.Scanner) (l server.MaskedLine, err error) {
			return l, row.Scan(&l.Generation, &l.Line)
		})
	return out, sqlstore.Wrap(err, "list masked lines")
}

// Folded implements server.Snapshot.
func (n *Snapshot) Folded(ctx context.Context) (p server.Position, state []byte, err error) {
	err = n.On.Query(ctx, `SELECT epoch, generation, CASE WHEN state_line < 0 THEN line ELSE state_line END, state
FROM folds WHERE owner = ? AND stream = ? AND epoch = ?`, []any{n.at.Owner, n.at.Stream, n.at.Epoch},
		func(row sqlstore.Scanner) error { return row.Scan(&p.Epoch, &p.Generation, &p.Line, &state) })
	return p, state, sqlstore.Wrap(err, "read what is derived")
}

// CopiedFrom implements server.Snapshot.
func (n *Snapshot) CopiedFrom(ctx context.Context) (string, error) {
	return sqlstore.CopiedFrom(ctx, n.On, &n.session)
}

// Close implements server.Snapshot.
func (n *Snapshot) Close() error { return n.End() }

// Received implements server.Library.
func (x *Lines) Received(ctx context.Context, d sqlstore.Dialect, at Place, line int64) (time.Time, error) {
	err := d.Query(ctx, `SELECT owner FROM streams WHERE id = ?`, []any{at.Stream},
		func(row sqlstore.Scanner) error { return row.Scan(&at.Owner) })
	l, ok := Line{}, false
	if err == nil {
		l, ok, err = x.one(ctx, reading{x: x, d: d, at: at, wait: true, span: server.Span{Most: 1}}, line)
	}
	if err == nil && !ok {
		err = server.ErrNotFound
	}
	return sqlstore.Moment(l.Received), sqlstore.Wrap(err, "look up line %d", line)
}
