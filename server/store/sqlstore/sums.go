package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"math"
	"slices"
	"strings"

	"github.com/ccship/ccship/server"
)

// Sums are the sums of a database. Safe for concurrent use.
type Sums struct{ db Writer }

// NewSums returns the sums of a database.
func NewSums(db DB) *Sums { return &Sums{Writer{db, Lazy}} }

// foldMost is how many streams are summed up in one transaction: it holds up their writers.
const foldMost = 200

// SumUp implements server.Summer. Streams and usage are summed up in transactions of their own, for others lock them in
// another order.
func (x *Sums) SumUp(ctx context.Context) (more bool, err error) {
	var streams, usage bool
	err = x.db.Query(ctx, `SELECT EXISTS (SELECT 1 FROM streams s WHERE s.summed < 0)
  OR EXISTS (SELECT 1 FROM project_sums p WHERE p.newest = 0), EXISTS (SELECT 1 FROM usage_sums s WHERE s.total = 0)`,
		nil, func(row Scanner) error { return row.Scan(&streams, &usage) })
	part := func(some bool, do func(context.Context, Dialect) (bool, error)) {
		if err != nil || !some {
			return
		}
		again := false
		err = x.db.Write(ctx, func(d Dialect) error {
			again, err = do(ctx, d)
			return err
		})
		more = more || again
	}
	part(streams, x.fold)
	part(usage, x.totals)
	return more, Wrap(err, "sum up")
}

// fold sums up some of what changed, and reports whether there may be more.
func (x *Sums) fold(ctx context.Context, d Dialect) (more bool, err error) {
	leads, err := d.TryHold(ctx, HeldSums, 0)
	if err != nil || !leads {
		return false, err
	}
	var ids []int64
	err = d.SkipLocked(ctx, `SELECT s.id FROM streams s WHERE s.summed < 0 ORDER BY s.owner, s.id LIMIT ?`,
		[]any{foldMost}, func(row Scanner) error {
			var id int64
			err := row.Scan(&id)
			ids = append(ids, id)
			return err
		})
	if err != nil {
		return false, err
	}
	// A second question: what others had not committed while a row was waited for is seen only by it.
	var list []stream
	if len(ids) > 0 {
		var f Filter
		f.Add(`s.id IN (`+Marks(len(ids))+`)`, Values(ids)...)
		if list, err = x.streams(ctx, d, f); err != nil {
			return false, err
		}
	}
	groups := tally(list)
	if err := addGroupsWithoutNewest(ctx, d, groups, Filter{}); err != nil {
		return false, err
	}
	if err := saveGroups(ctx, d, groups); err != nil {
		return false, err
	}
	for i := range list {
		if err := list[i].summed(ctx, d); err != nil {
			return false, err
		}
	}
	return len(ids) == foldMost, nil
}

// group is a row of project_sums. No stream of the group that did not change comes after the newest, in the order of
// activity and number. newest is 0 when that stream was forgotten.
type group struct {
	owner                    int64
	place                    []byte
	hash, machine            string
	newest, last             int64
	project, cwd, host       string
	sessions, bytes, streams int64

	repository string // see Repositories; not in the row
}

const groupColumns = `s.owner, s.place, s.project_hash, s.machine, s.newest, s.last, s.project, s.cwd, s.host,
  s.sessions, s.bytes, s.streams`

func scanGroup(row Scanner) (g group, err error) {
	return g, row.Scan(&g.owner, &g.place, &g.hash, &g.machine, &g.newest, &g.last, &g.project, &g.cwd, &g.host,
		&g.sessions, &g.bytes, &g.streams)
}

func (g *group) key() key { return key{g.owner, string(g.place)} }

// before says which of two groups is listed first.
func (g *group) before(o *group) int {
	return cmp.Or(cmp.Compare(o.last, g.last), cmp.Compare(g.owner, o.owner), bytes.Compare(g.place, o.place))
}

// answer returns the group as others know it.
func (g *group) answer() server.Group {
	return server.Group{ProjectHash: g.hash, Repository: g.repository, Project: g.project, Cwd: g.cwd,
		Machine: g.machine, Host: g.host, Owner: g.owner, Sessions: g.sessions, Bytes: g.bytes, Last: Moment(g.last)}
}

// addGroupsWithoutNewest adds the groups, of those that a filter lets through, whose newest stream was forgotten.
func addGroupsWithoutNewest(ctx context.Context, d Dialect, to map[key]*change, f Filter) error {
	f.Add(`s.newest = 0`)
	keys, err := List(ctx, d, `SELECT s.owner, s.place FROM project_sums s `+f.Where(), f.Args,
		func(row Scanner) (key, error) {
			var k key
			var place []byte
			err := row.Scan(&k.owner, &place)
			k.place = string(place)
			return k, err
		})
	for _, k := range keys {
		if to[k] == nil {
			to[k] = &change{}
		}
	}
	return err
}

// changed are groups as they are, in no order. Those without streams are among them. Their rows are read by rows.
func changed(ctx context.Context, d, rows Dialect, changes map[key]*change) ([]group, error) {
	places := map[int64][]any{}
	for k := range changes {
		places[k.owner] = append(places[k.owner], []byte(k.place))
	}
	have := map[key]group{}
	for owner, of := range places {
		for part := range slices.Chunk(of, 500) {
			list, err := List(ctx, rows, `SELECT `+groupColumns+` FROM project_sums s
WHERE s.owner = ? AND s.place IN (`+Marks(len(part))+`)`, append([]any{owner}, part...), scanGroup)
			if err != nil {
				return nil, err
			}
			for _, g := range list {
				have[g.key()] = g
			}
		}
	}
	out := make([]group, 0, len(changes))
	for k, c := range changes {
		g, known := have[k]
		if !known {
			g = group{owner: k.owner, place: []byte(k.place), newest: -1, last: math.MinInt64}
		}
		if err := g.correct(ctx, d, c); err != nil {
			return nil, err
		}
		out = append(out, g)
	}
	return out, nil
}

// correct applies a change to a group.
func (g *group) correct(ctx context.Context, d Dialect, c *change) error {
	g.sessions, g.bytes, g.streams = g.sessions+c.sessions, g.bytes+c.bytes, g.streams+c.streams
	n := c.newest
	switch {
	case g.streams <= 0:
		return nil
	case n != nil && (n.active > g.last || n.active == g.last && g.newest != 0 && n.id >= g.newest):
		g.newest, g.last, g.hash, g.machine, g.project, g.cwd, g.host = n.id, n.active, n.hash, n.machine, n.project, n.cwd,
			n.host
		return nil
	case g.newest != 0 && !c.was[g.newest]:
		return nil
	}
	if n != nil {
		g.hash, g.machine = n.hash, n.machine
	}
	return d.Query(ctx, `
SELECT s.id, s.active, s.project, s.cwd, s.host FROM streams s
WHERE s.owner = ? AND s.project_hash = ? AND s.machine = ? AND `+HasLines+`
ORDER BY s.active DESC, s.id DESC LIMIT 1`, []any{g.owner, g.hash, g.machine}, func(row Scanner) error {
		return row.Scan(&g.newest, &g.last, &g.project, &g.cwd, &g.host)
	})
}

// saveGroups stores groups that changed.
func saveGroups(ctx context.Context, d Dialect, changes map[key]*change) error {
	list, err := changed(ctx, d, Locked{d}, changes)
	if err != nil {
		return err
	}
	for i := range list {
		g := &list[i]
		if g.streams <= 0 {
			_, err = d.Exec(ctx, `DELETE FROM project_sums WHERE owner = ? AND place = ?`, g.owner, g.place)
		} else {
			_, err = d.Exec(ctx, `
INSERT INTO project_sums (owner, place, project_hash, machine, newest, last, project, cwd, host, sessions, bytes,
  streams)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (owner, place) DO UPDATE SET newest = excluded.newest, last = excluded.last, project = excluded.project,
  cwd = excluded.cwd, host = excluded.host, sessions = excluded.sessions, bytes = excluded.bytes,
  streams = excluded.streams`, g.owner, g.place, g.hash, g.machine, g.newest, g.last, g.project, g.cwd, g.host,
				g.sessions, g.bytes, g.streams)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stream is what sums need to know of a stream, as it is and as they have it.
type stream struct {
	id, owner                         int64
	hash, machine, project, cwd, host string
	main, active                      int64  // main: 1 for a session, 0 for an agent of one
	bytes                             *int64 // nil: it has no lines
	wasPlace                          []byte // none: it is in no sum
	wasMain, wasBytes                 int64
}

// streams returns those that a filter lets through.
func (x *Sums) streams(ctx context.Context, d Dialect, f Filter) ([]stream, error) {
	return List(ctx, d, `
SELECT s.id, s.owner, s.project_hash, s.machine, s.project, s.cwd, s.host, CASE s.parent WHEN '' THEN 1 ELSE 0 END,
  s.active, (SELECT CASE WHEN g.end_offset > 0 THEN g.end_offset ELSE g.bytes END FROM generations g
    WHERE g.owner = s.owner AND g.stream = s.id ORDER BY g.epoch DESC, g.generation DESC LIMIT 1),
  s.sum_place, s.sum_main, s.sum_bytes
FROM streams s `+f.Where(), f.Args, func(row Scanner) (s stream, err error) {
		return s, row.Scan(&s.id, &s.owner, &s.hash, &s.machine, &s.project, &s.cwd, &s.host, &s.main, &s.active, &s.bytes,
			&s.wasPlace, &s.wasMain, &s.wasBytes)
	})
}

// summed notes what of a stream is in sums from now on.
func (s *stream) summed(ctx context.Context, d Dialect) error {
	place, main, bytes := []byte{}, int64(0), int64(0)
	if s.bytes != nil {
		place, main, bytes = []byte(s.key().place), s.main, *s.bytes
	}
	_, err := d.Exec(ctx, `UPDATE streams SET summed = version, sum_place = ?, sum_main = ?, sum_bytes = ?
WHERE owner = ? AND id = ?`, place, main, bytes, s.owner, s.id)
	return err
}

// key names a group: an owner's project on a machine.
type key struct {
	owner int64
	place string
}

// key is that of the stream's group. Names may be longer than an index takes, so it is a hash.
func (s *stream) key() key { return keyOf(s.owner, s.hash, s.machine) }

func keyOf(owner int64, hash, machine string) key {
	sum := sha256.Sum256([]byte(hash + "\x00" + machine))
	return key{owner, string(sum[:16])}
}

// change is by how much the sums of a group are wrong.
type change struct {
	sessions, bytes, streams int64
	newest                   *stream        // of those that changed and are in the group
	was                      map[int64]bool // streams that changed and that the sums have in the group
}

// tally is by how much the sums are wrong when those streams are the ones that changed.
func tally(list []stream) map[key]*change {
	out := map[key]*change{}
	of := func(k key) *change {
		c := out[k]
		if c == nil {
			c = &change{was: map[int64]bool{}}
			out[k] = c
		}
		return c
	}
	for i := range list {
		s := &list[i]
		if len(s.wasPlace) > 0 {
			c := of(key{s.owner, string(s.wasPlace)})
			c.sessions, c.bytes, c.streams = c.sessions-s.wasMain, c.bytes-s.wasBytes, c.streams-1
			c.was[s.id] = true
		}
		if s.bytes == nil {
			continue
		}
		c := of(s.key())
		c.sessions, c.bytes, c.streams = c.sessions+s.main, c.bytes+*s.bytes, c.streams+1
		if n := c.newest; n == nil || s.active > n.active || s.active == n.active && s.id > n.id {
			c.newest = s
		}
	}
	return out
}

// Marks are question marks for n values.
func Marks(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

// Values returns a list as values of a query.
func Values[T any](list []T) []any {
	out := make([]any, len(list))
	for i, x := range list {
		out[i] = x
	}
	return out
}
