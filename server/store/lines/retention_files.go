package lines

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// filesOf are the contents of a session's attachments that nothing else refers to: no document, and no other session
// unless that was dropped too. For ActionCold they are those that are in the database.
func (p *Policy) filesOf(ctx context.Context, u *unit, action string) ([]file, error) {
	list := of(``, u.ids())
	own := strings.TrimPrefix(list, ` AND `)
	query := `SELECT DISTINCT b.id, b.size FROM blob_refs x JOIN blobs b ON b.owner = ? AND b.sha256 = x.sha256
WHERE x.owner = ? AND ` + own + ` AND b.stored > 0 AND `
	args := []any{u.owner, u.owner}
	if action == server.ActionCold {
		query += `EXISTS (SELECT 1 FROM blob_chunks c WHERE c.owner = b.owner AND c.blob = b.id AND c.object = '')`
	} else {
		query += `b.retired = 0
  AND NOT EXISTS (SELECT 1 FROM blob_refs o JOIN streams s ON s.owner = o.owner AND s.id = o.stream
    WHERE s.owner = b.owner AND o.sha256 = b.sha256 AND NOT (` + strings.ReplaceAll(own, "x.stream", "o.stream") + `)
      AND s.retired = 0)
  AND NOT EXISTS (SELECT 1 FROM document_versions v JOIN documents d ON d.owner = v.owner AND d.id = v.document
    JOIN streams s ON s.owner = d.owner AND s.id = d.stream WHERE s.owner = b.owner AND v.sha256 = b.sha256)`
	}
	out, err := sqlstore.List(ctx, p.reader, query+` ORDER BY b.id`, args,
		func(row sqlstore.Scanner) (f file, err error) { return f, row.Scan(&f.id, &f.size) })
	return out, sqlstore.Wrap(err, "list files")
}

// dropFile removes a content. Its address stays: it is not sent again.
func (a *applying) dropFile(ctx context.Context, f file) error {
	s := a.unit.streams[0]
	gone := false
	err := a.write(ctx, s, func(d sqlstore.Dialect) error {
		gone = false
		there, err := sqlstore.Number(ctx, sqlstore.Locked{Dialect: d}, `SELECT 1 FROM blobs WHERE owner = ? AND id = ?`,
			s.owner, f.id)
		if err != nil || there == 0 {
			return err
		}
		again, err := a.in(d).filesOf(ctx, a.unit, a.rule.Action)
		if err != nil {
			return err
		}
		for _, x := range again { // nobody refers to it meanwhile
			if x.id != f.id {
				continue
			}
			if err := sqlstore.RemoveContent(ctx, d, s.owner, f.id); err != nil {
				return fmt.Errorf("remove file: %w", err)
			}
			_, err := d.Exec(ctx, `UPDATE blobs SET retired = ? WHERE owner = ? AND id = ?`,
				sqlstore.Micros(a.how.Now), s.owner, f.id)
			if err != nil {
				return fmt.Errorf("note file: %w", err)
			}
			gone = true
			return a.log(ctx, d, s, server.RetentionCount{Files: 1, Bytes: f.size})
		}
		return nil
	})
	if err == nil && gone {
		a.done.Files, a.done.Bytes = a.done.Files+1, a.done.Bytes+f.size
	}
	return err
}

// in is the policy that reads in a transaction.
func (p *Policy) in(d sqlstore.Dialect) *Policy {
	x := *p
	x.reader = d
	return &x
}

// cool moves what a rule takes to cold storage.
func (a *applying) cool(ctx context.Context) error {
	var only []Place
	if a.rule.What == server.RetireGenerations {
		for _, w := range a.work {
			for _, p := range w.pieces {
				only = append(only, p.at(w.stream))
			}
		}
	}
	moved, err := a.cooler.CoolOf(ctx, a.unit.owner, a.unit.ids(), only)
	if err != nil || moved.Objects == 0 {
		return err
	}
	for _, w := range a.work {
		n := server.RetentionCount{}
		for _, p := range w.pieces {
			n.Generations++
			n.Lines, n.Bytes = n.Lines+p.lines, n.Bytes+p.bytes
		}
		if w.stream == a.unit.streams[0] {
			n.Files = int64(len(a.files))
			for _, f := range a.files {
				n.Bytes += f.size
			}
		}
		if !n.Any() {
			continue
		}
		if err := a.db.Write(ctx, func(d sqlstore.Dialect) error { return a.log(ctx, d, w.stream, n) }); err != nil {
			return err
		}
		a.done.Add(n)
	}
	return nil
}

// leastRest is how long a session must have rested before any rule takes it.
const leastRest = 24 * time.Hour

// guard knows why sessions of an owner must not be touched.
type guard struct {
	holds []server.Hold
	why   map[int64]string // by stream: a mark, a link, a document
	check map[int64]bool   // streams with checkpoints
	now   time.Time
}

// guarded are the tables whose rows keep a stream, and why. Of marks those of its user and of owners count: a user who
// may only read must not decide what is kept.
func guarded() [][2]string {
	return [][2]string{
		{server.KeptDocument, `SELECT DISTINCT x.stream FROM documents x JOIN streams s
  ON s.owner = x.owner AND s.id = x.stream WHERE s.owner = ?`},
		{server.KeptLink, `SELECT DISTINCT x.stream FROM share_links x JOIN streams s
  ON s.owner = x.owner AND s.id = x.stream WHERE s.owner = ? AND x.until > ?`},
		{server.KeptMark, `SELECT DISTINCT x.stream FROM marks x JOIN streams s
  ON s.owner = x.owner AND s.id = x.stream JOIN users u ON u.id = x.reader
  WHERE s.owner = ? AND (x.reader = s.owner OR u.role = 'owner')`},
	}
}

// of restricts a statement about streams x to some; without any, to all.
func of(query string, ids []int64) string {
	if len(ids) == 0 {
		return query
	}
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = fmt.Sprint(id)
	}
	return query + ` AND x.stream IN (` + strings.Join(list, ", ") + `)`
}

// guardOf reads what keeps the streams of an owner: some of them, or all.
func guardOf(ctx context.Context, d sqlstore.Dialect, owner int64, ids []int64, now time.Time) (*guard, error) {
	g := &guard{why: map[int64]string{}, check: map[int64]bool{}, now: now}
	var err error
	if g.holds, err = holds(ctx, d); err != nil {
		return nil, err
	}
	for _, x := range guarded() {
		args := []any{owner}
		if strings.Contains(x[1], "until") {
			args = append(args, sqlstore.Micros(now))
		}
		streams, err := sqlstore.Numbers(ctx, d, of(x[1], ids), args...)
		if err != nil {
			return nil, fmt.Errorf("look for what is kept: %w", err)
		}
		for _, id := range streams {
			g.why[id] = x[0]
		}
	}
	streams, err := sqlstore.Numbers(ctx, d, of(`SELECT DISTINCT x.stream FROM checkpoints x JOIN streams s
  ON s.owner = x.owner AND s.id = x.stream WHERE s.owner = ?`, ids), owner)
	for _, id := range streams {
		g.check[id] = true
	}
	return g, sqlstore.Wrap(err, "look for checkpoints")
}

// keeps is why a rule must not take a session now; "": it may.
func (g *guard) keeps(u *unit, r *server.RetentionRule) string {
	why := g.needs(u, r)
	if why == "" && u.last > sqlstore.Micros(g.now.Add(-leastRest)) {
		why = server.KeptRunning
	}
	return why
}

// needs is why a rule must not take a session, however long it rests.
func (g *guard) needs(u *unit, r *server.RetentionRule) string {
	for _, h := range g.holds {
		if (h.User == 0 || h.User == u.owner) && u.in(h.Project) && (h.Session == "" || root(h.Session, "") == u.name) {
			return server.KeptHold
		}
	}
	if r.Action == server.ActionCold {
		return "" // nothing of it is lost
	}
	for _, s := range u.streams {
		if why := g.why[s.id]; why != "" {
			return why
		}
	}
	for _, s := range u.streams {
		if r.What == server.RetireSessions && !r.Checkpoints && g.check[s.id] {
			return server.KeptCheckpoint
		}
	}
	return ""
}

// related are the other streams of an owner that have answers of a session: its history was copied, one way or the
// other.
func (p *Policy) related(ctx context.Context, u *unit) (out []int64, err error) {
	for _, s := range u.streams {
		some, err := sqlstore.Numbers(ctx, p.reader, `SELECT DISTINCT o.stream FROM answers a
JOIN answers o ON o.owner = a.owner AND o.key = a.key AND o.stream <> a.stream
WHERE a.owner = ? AND a.stream = ?`, s.owner, s.id)
		if err != nil {
			return nil, fmt.Errorf("look for forks: %w", err)
		}
		out = append(out, some...)
	}
	own := u.ids()
	return slices.DeleteFunc(out, func(id int64) bool { return slices.Contains(own, id) }), nil
}

// withoutForks leaves those sessions out that share history with one that is kept. gone are streams that rules dropped
// before.
func (p *Policy) withoutForks(ctx context.Context, chosen []*unit,
	gone map[int64]bool) (rest, kept []*unit, err error) {
	going, kin := map[int64]bool{}, map[*unit][]int64{}
	for _, u := range chosen {
		if kin[u], err = p.related(ctx, u); err != nil {
			return nil, nil, err
		}
		for _, id := range u.ids() {
			going[id] = true
		}
	}
	for again := true; again; {
		again = false
		for _, u := range chosen {
			if !going[u.streams[0].id] || !slices.ContainsFunc(kin[u], func(id int64) bool { return !going[id] && !gone[id] }) {
				continue
			}
			for _, id := range u.ids() {
				delete(going, id)
			}
			again = true
		}
	}
	for _, u := range chosen {
		if going[u.streams[0].id] {
			rest = append(rest, u)
		} else {
			kept = append(kept, u)
		}
	}
	return rest, kept, nil
}

// goneStreams are streams of an owner that rules dropped.
func (p *Policy) goneStreams(ctx context.Context, owner int64) (map[int64]bool, error) {
	out := map[int64]bool{}
	list, err := sqlstore.Numbers(ctx, p.reader, `SELECT id FROM streams WHERE owner = ? AND retired > 0`, owner)
	for _, id := range list {
		out[id] = true
	}
	return out, sqlstore.Wrap(err, "look for dropped sessions")
}
