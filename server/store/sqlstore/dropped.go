package sqlstore

import (
	"context"

	"github.com/ccship/ccship/server"
)

// Dropped implements server.SessionFinder.
func (c *Finder) Dropped(ctx context.Context, scope server.Scope, of []server.FoundSession,
	most int64) (out server.Dropped, err error) {
	err = EachPart(ctx, c.reader, scope, func(part Part) error {
		if out.Count >= most {
			return nil
		}
		from, f := `drops d`, Filter{}
		f.Add(`d.lines > 0`)
		switch {
		case scope.Only != 0 || len(part.Projects) > 0:
			from = `drops d JOIN streams s ON s.owner = d.owner AND s.id = d.stream`
			f.Select(part, scope)
		case part.Owner != 0:
			f.Add(`d.owner = ?`, part.Owner)
		}
		if len(part.Projects) > 0 {
			f.Add(`d.owner = ?`, part.Owner)
		}
		some, err := Number(ctx, c.reader, `SELECT count(*) FROM (SELECT 1 FROM `+from+` `+f.Where()+` LIMIT ?) counted`,
			append(f.Args, most-out.Count)...)
		out.Count += some
		return err
	})
	if err == nil && len(of) > 0 {
		out.Streams, err = c.dropped(ctx, of)
	}
	return out, Wrap(err, "count rewrites")
}

// dropped returns the streams of sessions out of whose files a rewrite took lines.
func (c *Finder) dropped(ctx context.Context, of []server.FoundSession) (map[int64]bool, error) {
	var owners, streams []int64
	for i := range of {
		owners, streams = append(owners, of[i].Owner), append(streams, of[i].ID)
	}
	of1, of2 := few(owners), few(streams)
	out := map[int64]bool{}
	list, err := Numbers(ctx, c.reader, `
SELECT DISTINCT stream FROM drops
WHERE owner IN (`+Marks(len(of1))+`) AND stream IN (`+Marks(len(of2))+`) AND lines > 0`, append(of1, of2...)...)
	for _, stream := range list {
		out[stream] = true
	}
	return out, err
}
