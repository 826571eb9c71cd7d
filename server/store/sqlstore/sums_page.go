package sqlstore

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/ccship/ccship/server"
)

// Groups implements server.SessionFinder.
func (x *Sums) Groups(ctx context.Context, scope server.Scope, q server.GroupQuery) (server.Groups, error) {
	after, err := parseSumAfter(q.After)
	if err != nil {
		return server.Groups{}, err
	}
	var list []group
	err = x.db.Read(ctx, func(d Dialect) error {
		p := page{GroupQuery: q, after: after}
		if q.Project != "" {
			if p.named, err = namedProjects(ctx, d, scope, q.Project); err != nil {
				return err
			}
		}
		if list, err = x.groups(ctx, d, scope, p); err != nil {
			return err
		}
		return nameRepositories(ctx, d, list)
	})
	if err != nil {
		return server.Groups{}, fmt.Errorf("list projects: %w", err)
	}
	var out server.Groups
	if q.Limit > 0 && len(list) > q.Limit {
		list = list[:q.Limit]
		out.Next = list[q.Limit-1].cursor()
	}
	for i := range list {
		out.List = append(out.List, list[i].answer())
	}
	return out, nil
}

// page is what is asked of groups.
type page struct {
	server.GroupQuery
	after *group           // the last of the page before; nil: none
	named map[project]bool // those that are asked for
}

// most returns how many groups are looked for: one more than are shown.
func (p *page) most() int {
	if p.Limit <= 0 {
		return math.MaxInt32
	}
	return p.Limit + 1
}

// has reports whether a group is on the page or behind it.
func (p *page) has(g *group) bool {
	chosen := p.Project == "" || g.project == p.Project || g.hash != "" && p.named[project{g.owner, g.hash}]
	return g.streams > 0 && chosen && (p.after == nil || g.before(p.after) > 0)
}

// groups returns those of a page, and one more if there is.
func (x *Sums) groups(ctx context.Context, d Dialect, scope server.Scope, p page) ([]group, error) {
	if scope.Only != 0 {
		return x.anew(ctx, d, scope, p)
	}
	parts, err := Parts(ctx, d, scope)
	if err != nil {
		return nil, err
	}
	var all []group
	for _, part := range parts {
		some, err := x.ofPart(ctx, d, scope, part, p)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b group) int { return a.before(&b) })
	return all[:min(len(all), p.most())], nil
}

// ofPart returns the groups of a page that are in a part of what a scope sees.
func (x *Sums) ofPart(ctx context.Context, d Dialect, scope server.Scope, part Part, p page) (out []group, err error) {
	var f, of Filter
	f.Part(Part{Owner: part.Owner}) // what changed may have been of another project before
	of.Part(part)
	f.Add(`s.summed < 0`)
	list, err := x.streams(ctx, d, f)
	if err != nil {
		return nil, err
	}
	changes := tally(list)
	if err := addGroupsWithoutNewest(ctx, d, changes, of); err != nil {
		return nil, err
	}
	add := func(g group) {
		if p.has(&g) {
			out = append(out, g)
		}
	}
	others, err := changed(ctx, d, d, changes)
	if err != nil {
		return nil, err
	}
	for _, g := range others {
		if part.Has(g.owner, g.hash) {
			add(g)
		}
	}
	of.Project(scope, p.Project)
	if p.after != nil {
		of.Add(`s.last <= ?`, p.after.last)
		of.Add(`(s.last < ? OR (s.owner, s.place) > (?, ?))`, p.after.last, p.after.owner, p.after.place)
	}
	rows, err := List(ctx, d, `SELECT `+groupColumns+` FROM project_sums s `+of.Where()+`
ORDER BY s.last DESC, s.owner, s.place LIMIT ?`, append(of.Args, p.most()+len(changes)), scanGroup)
	for _, g := range rows {
		if changes[g.key()] == nil {
			add(g)
		}
	}
	return out, err
}

// anew counts groups of a few streams.
func (x *Sums) anew(ctx context.Context, d Dialect, scope server.Scope, p page) ([]group, error) {
	var f Filter
	f.Scope(scope)
	list, err := x.streams(ctx, d, f)
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i].wasPlace = nil
	}
	var out []group
	for k, c := range tally(list) {
		g := group{owner: k.owner, place: []byte(k.place), newest: -1, last: math.MinInt64}
		if err := g.correct(ctx, d, c); err != nil {
			return nil, err
		}
		if p.has(&g) {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(a, b group) int { return a.before(&b) })
	return out[:min(len(out), p.most())], nil
}

// cursor names the position behind a group.
func (g *group) cursor() string { return fmt.Sprintf("%d-%d-%x", g.last, g.owner, g.place) }

func parseSumAfter(after string) (*group, error) {
	if after == "" {
		return nil, nil
	}
	var g group
	_, err := fmt.Sscanf(after, "%d-%d-%x", &g.last, &g.owner, &g.place)
	if err != nil || g.cursor() != after {
		return nil, server.ErrBadPage
	}
	return &g, nil
}
