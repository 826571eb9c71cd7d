package search

import (
	"cmp"
	"context"
	"errors"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/store/sqlstore"
)

const (
	// showBytes is how much is read of one turn for what is shown of it, and pageBytesShown for a whole page.
	showBytes      = 1 << 20
	pageBytesShown = 24 << 20
	// nearBonus is how much better a session is whose words stand next to each other.
	nearBonus = .3
	// mostHistory is how many prompts of histories are looked at.
	mostHistory = 30
)

// show finds what is shown of sessions, puts those first whose words stand near each other, and returns all streams.
func (r *ranking) show(ctx context.Context, list []*group) (ids []int64, err error) {
	near := map[*group]float64{}
	left := pageBytesShown
	for _, g := range list {
		best := 0.0
		for i, t := range g.turns {
			if i > 0 && len(g.lines) >= r.ask.Each || i > 1 && len(g.lines) > 0 || left < 0 {
				break
			}
			n, used, err := r.showTurn(ctx, g, t)
			if err != nil {
				return nil, err
			}
			best = math.Max(best, n)
			left -= used
		}
		near[g] = g.score * (1 + nearBonus*best)
		g.lines = r.bestLines(g.lines)
		ids = append(ids, g.main.id)
		for _, h := range g.lines {
			ids = append(ids, h.stream)
		}
	}
	slices.SortStableFunc(list, func(a, b *group) int { return cmp.Compare(near[b], near[a]) })
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// bestLines returns the best of what was found in a session: what the newest view shows before what a rewind took out.
func (r *ranking) bestLines(lines []hit) []hit {
	slices.SortStableFunc(lines, func(a, b hit) int {
		return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(b.weight(), a.weight()), compare(b.place, a.place))
	})
	lines = slices.CompactFunc(lines, func(a, b hit) bool { return a.place == b.place })
	type said struct {
		origin, kind, text string
		time               int64
	}
	seen, by := map[string]bool{}, map[said]int64{}
	lines = slices.DeleteFunc(lines, func(h hit) bool {
		known := h.kind == "title" && seen[h.text.Snippet] // a title is written again and again
		seen[h.text.Snippet] = true
		if x := r.infos[h.stream]; x != nil && x.origin != "" { // an agent's transcript may lie in two folders
			s := said{x.origin, h.kind, h.text.Snippet, h.time}
			stream, copied := by[s]
			known = known || copied && stream != h.stream
			if !copied {
				by[s] = h.stream
			}
		}
		return known
	})
	return lines[:min(len(lines), r.ask.Each)]
}

// showTurn adds the lines of a turn that have words, first of what people say. near is how near the words stand.
func (r *ranking) showTurn(ctx context.Context, g *group, t *turn) (near float64, used int, err error) {
	x := r.infos[t.stream]
	for _, good := range []bool{true, false} {
		found := len(g.lines)
		for _, d := range t.docs {
			n, bytes, err := r.showDoc(ctx, g, x, d, good)
			if err != nil {
				return 0, used, err
			}
			near, used = math.Max(near, n), used+bytes
		}
		if len(g.lines) > found {
			break
		}
	}
	return near, used, nil
}

var errShown = errors.New("enough is shown")

func (r *ranking) showDoc(ctx context.Context, g *group, x *info, d *doc, good bool) (near float64, used int,
	err error) {
	wanted := map[int64]bool{}
	for _, l := range d.Lines {
		wanted[l.Index] = !l.Rest
	}
	epoch, _ := x.epochOf(d)
	span := server.Span{Generation: d.Generation, From: d.First(), To: d.Last() + 1}
	at := Place{x.owner, d.Stream, d.Epoch}
	err = r.x.lines(ctx, r.d, at, span, func(l server.Line) error {
		if used += len(l.Raw); used > showBytes {
			return errShown
		}
		if wanted[l.Index] != good || !x.counts(d, l.Index) {
			return nil
		}
		for _, text := range derive.TextsOf(l) {
			if h, n := r.hit(d, l.Index, &text); h != nil {
				h.text.Epoch, h.text.Current = epoch, x.shows(d, l.Index)
				g.lines, near = append(g.lines, *h), math.Max(near, n)
			}
		}
		return nil
	})
	if _, damaged := errors.AsType[*server.DamagedError](err); damaged || errors.Is(err, errShown) {
		err = nil
	}
	return near, used, err
}

// hit returns a text that has words; nil if it has none.
func (r *ranking) hit(d *doc, index int64, text *server.Text) (*hit, float64) {
	if bitsOf([]string{text.Kind})&r.kindBits() == 0 {
		return nil, 0
	}
	var list []string
	var places []spot
	mask := r.has(text.Text, func(n, i int, word []byte) {
		list, places = append(list, string(word)), append(places, spot{n: n, term: i})
	})
	if mask &= r.inClauses; mask == 0 {
		return nil, 0
	}
	sum, all := 0.0, 0.0
	for i := range r.terms {
		if r.inClauses>>i&1 == 1 {
			all += r.rarity(i)
			if mask>>i&1 == 1 {
				sum += r.rarity(i)
			}
		}
	}
	w, ok := kindWeights[text.Kind]
	if !ok {
		w = 1
	}
	slices.Sort(list)
	near := sum / all * nearness(places)
	h := &hit{place: place{d.timeOf(index), d.Stream, d.Epoch, d.Generation, index, text.Kind}, rank: sum/all*(4+w) + near}
	h.text.Snippet = snippet(text.Kind, text.Text, slices.Compact(list))
	return h, near
}

// quotes matches the signs with which Markdown begins a quoted line.
var quotes = regexp.MustCompile(`(?m)^ {0,3}(?:> ?)+`)

// commandTags are those around what a command is called, is given and prints.
var commandTags = regexp.MustCompile(`</?(?:bash|command|local-command)-[a-z]+>`)

// snippet returns the part of a text that shows what was found, in one line. Signs of quoted lines mean nothing there
// and are left out, unless one of them was searched for; so do the tags of a command and its output.
func snippet(kind, text string, shown []string) string {
	if at := commandTags.FindStringIndex(text); at != nil && at[0] == 0 {
		if plain := commandTags.ReplaceAllString(text, " "); sqlstore.HoldsAll(plain, shown) {
			text = plain
		}
	}
	marked := slices.ContainsFunc(shown, func(s string) bool { return strings.Contains(s, ">") })
	if !marked && (strings.HasPrefix(text, ">") || strings.Contains(text, "\n>")) &&
		slices.Contains([]string{"prompt", "message", "answer", "thinking", server.HistoryKind}, kind) {
		text = quotes.ReplaceAllString(text, "")
	}
	return sqlstore.Snippet(text, shown)
}

// spot is where a word stands in a text: how many words are before it.
type spot struct{ n, term int }

// nearness returns how much of the shortest stretch that has all words they are themselves: 1 if they stand side by
// side.
func nearness(places []spot) float64 {
	count, kinds, best := map[int]int{}, 0, math.MaxInt
	for _, p := range places {
		if count[p.term]++; count[p.term] == 1 {
			kinds++
		}
	}
	have := map[int]int{}
	for from, to := 0, 0; to < len(places); to++ {
		for have[places[to].term]++; len(have) == kinds; from++ {
			best = min(best, places[to].n-places[from].n+1)
			if have[places[from].term]--; have[places[from].term] == 0 {
				delete(have, places[from].term)
			}
		}
	}
	return float64(kinds) / float64(max(best, kinds))
}

// kindBits returns the kinds that are shown.
func (r *ranking) kindBits() uint32 {
	if len(r.kinds) > 0 {
		return bitsOf(r.kinds)
	}
	return bitsOf(server.TextKinds())
}

// timeOf returns the time of a line of a turn, or of the last one before it that is known.
func (d *doc) timeOf(index int64) int64 {
	at := d.Lines[0].Time
	for _, l := range d.Lines {
		if l.Index <= index {
			at = l.Time
		}
	}
	return at
}

// marked returns the words of a text that are looked for, as they stand there.
func (r *ranking) marked(text string) (list []string) {
	r.has(text, func(_, i int, word []byte) { list = append(list, string(word)) })
	for _, c := range r.clauses {
		for _, a := range c.alts {
			if a.exact != "" {
				list = append(list, a.exact)
			}
			if a.regexp != nil {
				for _, m := range a.regexp.FindAllString(text, 8) {
					list = append(list, sqlstore.FoldText(m))
				}
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// addGone adds prompts of sessions that are not stored, which only a prompt history has.
func (r *ranking) addGone(ctx context.Context) error {
	for _, t := range r.history {
		r.scoreTurn(t)
	}
	slices.SortFunc(r.history, func(a, b *turn) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.time, a.time), cmp.Compare(b.stream, a.stream),
			cmp.Compare(b.line, a.line))
	})
	s := r.x.search(r.scope, server.SearchQuery{})
	s.d = r.d
	for _, t := range r.history[:min(len(r.history), mostHistory)] {
		x := r.infos[t.stream]
		var said derive.Past
		span := server.Span{Generation: t.generation, From: t.line, To: t.line + 1}
		err := r.x.lines(ctx, r.d, Place{x.owner, t.stream, t.epoch}, span, func(l server.Line) error {
			said, _ = derive.PastOf(l)
			return nil
		})
		session := said.Session
		if err != nil || session == "" || t.score == 0 || said.Unnamed && r.foundTyped(x.owner, said.Time.UnixMicro()) {
			continue
		}
		if stored, err := s.stored(ctx, x.owner, session); err != nil || stored {
			if err != nil {
				return err
			}
			continue
		}
		r.groupOf(x, session).add(t)
	}
	return nil
}

// excludePast leaves out sessions that only a history has by prompts with excluded words.
func (r *ranking) excludePast(ctx context.Context) error {
	found := map[int64]bool{} // histories that have one
	for _, g := range r.groups {
		found[g.main.id] = found[g.main.id] || g.gone != ""
	}
	wanted := map[turnID][]int64{} // lines of each generation
	for _, t := range r.history {
		if id := t.turnID; found[id.stream] && r.excludes(t.in) {
			id.line = 0
			wanted[id] = append(wanted[id], t.line)
		}
	}
	for id, lines := range wanted {
		x := r.infos[id.stream]
		span := server.Span{Generation: id.generation, From: slices.Min(lines), To: slices.Max(lines) + 1}
		slices.Sort(lines)
		err := r.x.lines(ctx, r.d, Place{x.owner, id.stream, id.epoch}, span, func(l server.Line) error {
			if _, is := slices.BinarySearch(lines, l.Index); !is {
				return nil
			}
			if p, ok := derive.PastOf(l); ok {
				r.excluded[x.goneKey(p.Session)] = true
			}
			return nil
		})
		if _, damaged := errors.AsType[*server.DamagedError](err); err != nil && !damaged {
			return err
		}
	}
	return nil
}

// foundTyped reports whether a turn that was found began when an owner typed a prompt whose history names no session.
func (r *ranking) foundTyped(owner, at int64) bool {
	for _, t := range r.turns {
		if r.infos[t.stream].owner != owner {
			continue
		}
		for _, d := range t.docs {
			if apart := d.Oldest() - at; max(apart, -apart) < sameTyping.Microseconds() {
				return true
			}
		}
	}
	return false
}

// sameTyping is how far apart a session and the prompt history note a prompt at most.
const sameTyping = 5 * time.Second

// facets counts what the found sessions have.
func (r *ranking) facets(list []*group) (f protocol.Facets) {
	kinds, months, projects := map[string]int64{}, map[string]int64{}, map[string]int64{}
	names := map[string]string{}
	zone := time.FixedZone("", int(r.ask.Zone/time.Second))
	for _, g := range list {
		if id := cmp.Or(g.main.repository, g.main.project); id != "" {
			projects[id]++
			names[id] = max(names[id], g.main.project)
		}
		for _, k := range facetKinds {
			if g.in&k.in != 0 {
				kinds[k.name]++
			}
		}
		if g.time > 0 {
			months[time.UnixMicro(g.time).In(zone).Format("2006-01")]++
		}
	}
	most := func(a, b protocol.Count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Value, b.Value))
	}
	f.Projects, f.Kinds, f.Months = counts(projects, most), counts(kinds, most),
		counts(months, func(a, b protocol.Count) int { return cmp.Compare(b.Value, a.Value) })
	for i := range f.Projects {
		f.Projects[i].Name = names[f.Projects[i].Value]
	}
	return f
}

// mostValues is how many values of a facet are answered.
const mostValues = 50

func counts(of map[string]int64, order func(a, b protocol.Count) int) (out []protocol.Count) {
	for v, n := range of {
		out = append(out, protocol.Count{Value: v, Count: n})
	}
	slices.SortFunc(out, order)
	return out[:min(len(out), mostValues)]
}
