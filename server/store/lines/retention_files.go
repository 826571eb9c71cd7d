package lines

import (
	"context"
	"fmt"
	"strings"

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
