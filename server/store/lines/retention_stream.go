package lines

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/sqlstore"
	"github.com/ccship/ccship/transcript"
)

// stream is a transcript as rules see it.
type stream struct {
	owner, id              int64
	session, parent        string
	hash, project, machine string
	active, last, stored   int64   // Unix microseconds; bytes
	gone                   []piece // what rules took of it in this application
	rest                   int64   // since when bytes were replaced that no rule took
}

// unit is a session with its agents, on all machines: one is not dropped without the others.
type unit struct {
	owner        int64
	name         string
	streams      []*stream
	active, last int64 // the latest of its streams
	stored       int64
}

func (u *unit) ids() (out []int64) {
	for _, s := range u.streams {
		out = append(out, s.id)
	}
	return out
}

// in reports whether a unit belongs to a project, by hash or by name; "" is all of them.
func (u *unit) in(project string) bool {
	return project == "" || slices.ContainsFunc(u.streams, func(s *stream) bool {
		return s.hash == project || s.project == project
	})
}

// root returns the name of the session that a stream belongs to.
func root(session, parent string) string {
	name := session
	if parent != "" {
		name = parent
	}
	if all := transcript.ForgetNames(name); len(all) > 0 {
		return all[len(all)-1]
	}
	return name
}

const selectStreams = `SELECT s.owner, s.id, s.session_id, s.parent, s.project_hash, s.project, s.machine, s.active,
  s.last_received, s.stored FROM streams s`

func scanStream(row sqlstore.Scanner) (*stream, error) {
	s := &stream{}
	return s, row.Scan(&s.owner, &s.id, &s.session, &s.parent, &s.hash, &s.project, &s.machine, &s.active, &s.last,
		&s.stored)
}

// units returns the sessions of an owner, the least recently active first.
func (p *Policy) units(ctx context.Context, owner int64) ([]*unit, error) {
	list, err := sqlstore.List(ctx, p.reader, selectStreams+` WHERE s.owner = ? ORDER BY s.active, s.id`, []any{owner},
		scanStream)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	return unitsOf(list), nil
}

func unitsOf(list []*stream) (out []*unit) {
	byName := map[string]*unit{}
	for _, s := range list {
		name := root(s.session, s.parent)
		u := byName[name]
		if u == nil {
			u = &unit{owner: s.owner, name: name}
			byName[name], out = u, append(out, u)
		}
		u.streams = append(u.streams, s)
		u.active, u.last, u.stored = max(u.active, s.active), max(u.last, s.last), u.stored+s.stored
	}
	slices.SortStableFunc(out, func(a, b *unit) int { return cmp.Compare(a.active, b.active) })
	return out
}

// piece is a run of lines of one generation that a rule may take. since is when the newest view stopped showing it; 0:
// the whole session goes.
type piece struct {
	epoch int64 // ID
	span  server.Span
	since int64

	lines, bytes int64
}

func (x *piece) at(s *stream) Place {
	return Place{Owner: s.owner, Stream: s.id, Epoch: x.epoch, Generation: x.span.Generation}
}

// tree is the epochs of a stream with their generations, newest epoch first.
type tree []branch

type branch struct {
	epoch       server.Epoch
	generations []server.Generation
}

func (p *Policy) tree(ctx context.Context, s *stream) (tree, error) {
	var out tree
	err := p.reader.Query(ctx, `
SELECT e.rank, e.name, e.first_seen, g.generation, g.rewound_to, g.end_line, g.first_seen
FROM epochs e JOIN generations g ON g.owner = e.owner AND g.stream = e.stream AND g.epoch = e.rank
WHERE e.owner = ? AND e.stream = ? ORDER BY e.rank DESC, g.generation`, []any{s.owner, s.id},
		func(row sqlstore.Scanner) error {
			var b branch
			var g server.Generation
			var seen, first int64
			err := row.Scan(&b.epoch.ID, &b.epoch.Name, &seen, &g.Number, &g.RewoundTo, &g.EndLine, &first)
			b.epoch.Rank, b.epoch.First, g.First = b.epoch.ID, sqlstore.Moment(seen), sqlstore.Moment(first)
			if n := len(out); n == 0 || out[n-1].epoch.ID != b.epoch.ID {
				out = append(out, b)
			}
			last := &out[len(out)-1]
			last.generations = append(last.generations, g)
			return err
		})
	return out, sqlstore.Wrap(err, "read generations")
}

// all returns all lines of a stream.
func (t tree) all() (out []piece) {
	for _, b := range t {
		for _, g := range b.generations {
			if end := max(g.EndLine, g.RewoundTo); end > g.RewoundTo {
				out = append(out, b.piece(server.Span{Generation: g.Number, From: g.RewoundTo, To: end}, 0))
			}
		}
	}
	return out
}

func (b *branch) piece(s server.Span, since int64) piece {
	return piece{epoch: b.epoch.ID, span: s, since: since}
}

// superseded returns the lines that the newest view does not show: what rewinds left, and earlier epochs.
func (t tree) superseded() (out []piece) {
	for i := range t {
		b := &t[i]
		for n, g := range b.generations {
			upper := max(g.EndLine, g.RewoundTo)
			for _, later := range b.generations[n+1:] {
				if from := max(later.RewoundTo, g.RewoundTo); from < upper {
					out = append(out, b.piece(server.Span{Generation: g.Number, From: from, To: upper},
						sqlstore.Micros(later.First)))
					upper = from
				}
			}
			if i > 0 && upper > g.RewoundTo {
				out = append(out, b.piece(server.Span{Generation: g.Number, From: g.RewoundTo, To: upper},
					sqlstore.Micros(t[i-1].epoch.First)))
			}
		}
	}
	return out
}

// place is a generation that a checkpoint names.
type place struct {
	epoch      string
	generation int64
}

// without leaves out what the views of some generations show.
func (t tree) without(pieces []piece, kept []place) []piece {
	for _, k := range kept {
		for i := range t {
			if t[i].epoch.Name != k.epoch {
				continue
			}
			v, err := server.ViewOf(t[i].generations, k.generation)
			if err != nil {
				continue // the checkpoint came before its lines
			}
			pieces = subtract(pieces, t[i].epoch.ID, v.Spans)
		}
	}
	return pieces
}

func subtract(pieces []piece, epoch int64, spans []server.Span) (out []piece) {
	for _, p := range pieces {
		parts := []piece{p}
		for _, s := range spans {
			if p.epoch != epoch || p.span.Generation != s.Generation {
				continue
			}
			var rest []piece
			for _, x := range parts {
				before, behind := x, x
				before.span.To, behind.span.From = min(x.span.To, s.From), max(x.span.From, s.To)
				for _, y := range []piece{before, behind} {
					if y.span.From < y.span.To {
						rest = append(rest, y)
					}
				}
			}
			parts = rest
		}
		out = append(out, parts...)
	}
	return out
}
