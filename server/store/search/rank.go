package search

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// ranking is one search for sessions. Words come from the turns of segments, which say how well a session matches; what
// must be found exactly comes from lines, as Search finds them.
type ranking struct {
	x     *Index
	d     sqlstore.Dialect
	scope server.Scope
	ask   server.RankQuery
	wanted

	only     map[int64]bool // streams of the sessions that are named; nil: any
	owners   []int64        // whose segments are read; nil: everybody's
	since    int64
	upper    int64
	infos    map[int64]*info
	groups   map[groupKey]*group
	turns    map[turnID]*turn
	titles   map[int64][]uint8 // by stream: fields of each term in titles
	history  []*turn           // of prompt histories
	df       []float64
	counted  float64           // turns that df is of
	mean     float64           // length of a turn
	read     int               // turns
	excluded map[groupKey]bool // sessions with excluded words, of more turns than are read
	used     int
	each     int // bytes that one walk through lines may read
	began    time.Time
	more     bool
	next     string // where the lines of the next page begin
}

// group is a session with its agents.
type group struct {
	groupKey
	main  *info
	turns []*turn // the best first
	lines []hit   // found exactly
	score float64
	exact float64 // what the best of lines counts
	have  []bool  // clauses
	mass  float64
	in    uint8 // fields
	time  int64 // of the best turn or line
}

type groupKey struct {
	owner            int64
	machine, session string
	gone             string // the session of prompts that only the history session has
}

// bestTurns is how many turns of a session are read for what is shown of it.
const bestTurns = 4

// Rank implements server.Searcher.
func (x *Index) Rank(ctx context.Context, scope server.Scope, a server.RankQuery) (server.Ranked, error) {
	r := &ranking{x: x, scope: scope, ask: a, wanted: readQuery(a.Query), since: minTime, upper: maxTime, each: walkBytes,
		infos: map[int64]*info{}, groups: map[groupKey]*group{}, turns: map[turnID]*turn{}, titles: map[int64][]uint8{},
		excluded: map[groupKey]bool{}, began: time.Now()}
	if a.Limit < 1 || a.Query.Empty() {
		return server.Ranked{}, nil
	}
	offset, after, err := readAfter(a.After)
	if err != nil {
		return server.Ranked{}, err
	}
	if !a.Query.After.IsZero() {
		r.since = a.Query.After.UnixMicro()
	}
	if !a.Query.Before.IsZero() {
		r.upper = a.Query.Before.UnixMicro() - 1
	}
	var out server.Ranked
	var ids []int64
	var shown []*group
	err = x.db.Read(ctx, func(d sqlstore.Dialect) error {
		r.d = d
		if err := r.find(ctx, after); err != nil {
			return err
		}
		list := r.sorted()
		out.Total, out.More, out.Turns = int64(len(list)), r.more, r.read
		out.Missing = r.missing(list)
		if a.Facets {
			out.Facets = r.facets(list)
		}
		shown = list[min(offset, len(list)):min(offset+a.Limit, len(list))]
		switch {
		case offset+a.Limit < len(list):
			out.Next = strconv.Itoa(offset+a.Limit) + " " + after
		case r.more && r.next != "":
			out.Next = "0 " + r.next
		}
		var err error
		ids, err = r.show(ctx, shown)
		return err
	})
	if err == nil {
		err = r.answer(ctx, &out, shown, ids)
	}
	if err != nil {
		return server.Ranked{}, fmt.Errorf("search: %w", err)
	}
	return out, nil
}

// readAfter reads where a page begins: how many sessions are before it, and where its lines begin.
func readAfter(after string) (offset int, lines string, err error) {
	if after == "" {
		return 0, "", nil
	}
	n, lines, ok := strings.Cut(after, " ")
	offset, err = strconv.Atoi(n)
	if _, bad := parsePlace(lines); err != nil || !ok || bad != nil || offset < 0 {
		return 0, "", server.ErrBadPage
	}
	return offset, lines, nil
}

// find finds and scores sessions: by lines that have what must be found exactly, by words, and by parts of words.
func (r *ranking) find(ctx context.Context, after string) error {
	if err := cmp.Or(r.chooseOwners(ctx), r.chooseStreams(ctx)); err != nil {
		return err
	}
	if len(r.clauses) == 0 && !r.linesOnly {
		return r.findRecent(ctx)
	}
	if r.strict || r.linesOnly {
		if err := r.findLines(ctx, after); err != nil {
			return err
		}
	}
	if err := r.findTurns(ctx); err != nil {
		return err
	}
	if err := r.addGone(ctx); err != nil {
		return err
	}
	if !r.strict && !r.linesOnly {
		if err := r.findParts(ctx); err != nil {
			return err
		}
	}
	if err := r.exclude(ctx); err != nil {
		return err
	}
	return r.score(ctx)
}

// sorted returns the groups, the best first. It leaves out a group with less than a quarter of the weight of words that
// the best has, and keeps one of several copies of a session.
func (r *ranking) sorted() []*group {
	most := 0.0
	for _, g := range r.groups {
		most = max(most, g.mass)
	}
	var list []*group
	for _, g := range r.groups {
		if g.mass >= most/4 {
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.time, a.time), cmp.Compare(b.main.active, a.main.active),
			cmp.Compare(b.main.id, a.main.id), cmp.Compare(a.gone, b.gone))
	})
	return distinctCopies(list)
}

// distinctCopies keeps of sessions with one origin the first, or one that has as much and is the better copy.
func distinctCopies(list []*group) []*group {
	at := map[string]int{}
	out := list[:0]
	for _, g := range list {
		if g.main.origin == "" || g.gone != "" {
			out = append(out, g)
			continue
		}
		key := fmt.Sprint(g.owner, " ", g.main.origin)
		i, known := at[key]
		switch {
		case !known:
			at[key] = len(out)
			out = append(out, g)
		case g.score == out[i].score && g.main.better(out[i].main):
			out[i] = g
		}
	}
	return out
}

// missing returns the words that the best session lacks, unless another has all.
func (r *ranking) missing(list []*group) []string {
	for _, g := range list {
		if !slices.Contains(g.have, false) {
			return nil
		}
	}
	if len(list) == 0 {
		return nil
	}
	return r.lacks(list[0])
}

func (r *ranking) lacks(g *group) (out []string) {
	for i, has := range g.have {
		if !has {
			out = append(out, r.clauses[i].text)
		}
	}
	return out
}

// answer loads what is shown.
func (r *ranking) answer(ctx context.Context, out *server.Ranked, shown []*group, ids []int64) error {
	sessions := map[int64]server.FoundSession{}
	if len(ids) > 0 {
		var err error
		if sessions, err = r.x.found.ByID(ctx, ids); err != nil {
			return err
		}
	}
	for _, g := range shown {
		main, ok := sessions[g.main.id]
		if !ok {
			continue // forgotten meanwhile
		}
		s := server.RankedSession{FoundSession: main, Missing: r.lacks(g), Gone: g.gone}
		for _, h := range g.lines {
			session, ok := sessions[h.stream]
			if !ok {
				continue
			}
			x := h.text
			x.Session, x.Summary = session.Session, session.Summary
			x.Generation, x.Line, x.Kind, x.Time = h.generation, h.line, h.kind, sqlstore.Moment(h.time)
			s.Hits = append(s.Hits, x)
		}
		out.List = append(out.List, s)
	}
	return nil
}
