package search

import (
	"context"
	"slices"
	"strings"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// stream is what a search knows of a stream that its query chooses.
type stream struct {
	owner  int64
	round  int64
	at     server.Position // derived so far
	epochs []epoch         // newest first
	origin string          // see server.Summary
	copy   int64
}

type epoch struct {
	id          int64 // its rank
	name        string
	generations []generation
}

type generation struct{ number, from int64 }

// derived says how far a stream is derived, and in which round.
const derived = `s.round, coalesce(p.epoch, 0), coalesce(p.generation, 0), coalesce(p.line, 0)`

// counts reports whether a line of a doc still counts: later rounds have not come to it.
func (s *stream) counts(d *doc, line int64) bool {
	if d.Round == s.round {
		return true
	}
	p := s.at
	switch {
	case d.Epoch != p.Epoch:
		return d.Epoch > p.Epoch
	case d.Generation != p.Generation:
		return d.Generation > p.Generation
	}
	return line >= p.Line
}

// epochOf returns the name of a doc's epoch; false when it is not there any more.
func (s *stream) epochOf(d *doc) (string, bool) {
	i := slices.IndexFunc(s.epochs, func(e epoch) bool { return e.id == d.Epoch })
	if i < 0 {
		return "", false
	}
	return s.epochs[i].name, true
}

// shows reports whether the newest view has a line: no newer generation begins at or before it, and no epoch is newer.
func (s *stream) shows(d *doc, line int64) bool {
	if s.epochs[0].id != d.Epoch {
		return false
	}
	for _, g := range s.epochs[0].generations {
		if g.number > d.Generation && g.from <= line {
			return false
		}
	}
	return true
}

// stream returns one that the query chooses, nil for others.
func (s *search) stream(ctx context.Context, id int64) (*stream, error) {
	if x, known := s.streams[id]; known {
		return x, nil
	}
	f := s.chosen()
	f.Add(`s.id = ?`, id)
	var x *stream
	err := s.d.Query(ctx, `SELECT s.owner, `+derived+`, coalesce(m.models, ''), coalesce(m.origin, ''), coalesce(m.copy, 0)
FROM streams s LEFT JOIN folds p ON p.owner = s.owner AND p.stream = s.id
LEFT JOIN facts m ON m.owner = s.owner AND m.stream = s.id `+f.Where(), f.Args,
		func(row sqlstore.Scanner) error {
			var found stream
			var models string
			err := row.Scan(&found.owner, &found.round, &found.at.Epoch, &found.at.Generation, &found.at.Line, &models,
				&found.origin, &found.copy)
			if err == nil && (s.q.Model == "" || strings.Contains(models, "\n"+s.q.Model+"\n")) {
				x = &found
			}
			return err
		})
	if err == nil && x != nil {
		err = s.loadEpochs(ctx, id, x)
	}
	if err != nil {
		return nil, err
	}
	if x != nil && len(x.epochs) == 0 {
		x = nil
	}
	s.streams[id] = x
	return x, nil
}

// chosen lets through the streams s that the query chooses.
func (s *search) chosen() sqlstore.Filter {
	if s.of != nil {
		return s.of.filter()
	}
	var f sqlstore.Filter
	f.Scope(s.scope)
	f.Project(s.scope, s.q.Project)
	f.Streams(s.q.Machine, s.q.User)
	if s.q.Session != "" {
		f.Session(s.q.Session, true)
	}
	return f
}

func (s *search) loadEpochs(ctx context.Context, id int64, x *stream) error {
	query, args := selectEpochs+` e.owner = ? AND e.stream = ?`, []any{x.owner, id}
	err := s.d.Query(ctx, query, args, func(row sqlstore.Scanner) error {
		_, e, g, err := scanEpoch(row)
		x.addEpoch(e, g)
		return err
	})
	x.sortEpochs()
	return err
}

func scanEpoch(row sqlstore.Scanner) (of int64, e epoch, g generation, err error) {
	return of, e, g, row.Scan(&of, &e.id, &e.name, &g.number, &g.from)
}

// addEpoch adds a generation of an epoch.
func (s *stream) addEpoch(e epoch, g generation) {
	i := slices.IndexFunc(s.epochs, func(o epoch) bool { return o.id == e.id })
	if i < 0 {
		s.epochs = append(s.epochs, e)
		i = len(s.epochs) - 1
	}
	s.epochs[i].generations = append(s.epochs[i].generations, g)
}

func (s *stream) sortEpochs() {
	slices.SortFunc(s.epochs, func(a, b epoch) int { return int(b.id - a.id) })
}
