package sqlstore

import (
	"context"
	"crypto/sha256"
	"strings"
)

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
