package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/ccship/ccship/server"
)

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
