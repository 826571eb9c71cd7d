package store_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// sums is what usage says by everything that sums know; exact makes it count answer by answer, for which it is
// asked by session too.
func (h *usageHistory) sums(r *rapid.T, q server.UsageQuery, exact bool) string {
	q.By = []string{"day", "hour", "project", "model", "machine", "user", "long"}
	if exact {
		q.By = append(q.By, "session")
	}
	rows := kit.Try(h.st.Usage(h.t.Context(), all, q)).Must(r)
	sums := map[string]server.Tokens{}
	for _, r := range rows {
		key := fmt.Sprint(r.Day, r.Hour, r.Project, r.Model, r.Machine, r.User, r.Long)
		sums[key] = sums[key].Add(r.Tokens)
	}
	return strings.Join(kit.Each(slices.Sorted(maps.Keys(sums)), func(key string) string { return fmt.Sprint(key, sums[key]) }), "\n")
}

// usageHistory is a store to which anything happens.
type usageHistory struct{ sumHistory }

// put stores a line; the stream's project may have another hash or name from then on.
func (h *usageHistory) put(r *rapid.T) {
	h.n++
	b := batch(h.name(r), object(h.n, "{}"))
	b.Owner = rapid.Int64Range(1, 2).Draw(r, "owner")
	b.Head.Machine = rapid.SampledFrom([]string{"m1", "m2"}).Draw(r, "machine")
	b.Head.ProjectHash = rapid.SampledFrom([]string{"", "x", "y"}).Draw(r, "hash")
	b.Head.Project = rapid.SampledFrom([]string{"", "p", "q"}).Draw(r, "project")
	if parent, _, ok := strings.Cut(b.Head.SessionID, "/"); ok {
		b.Head.Parent = parent
	}
	if err := h.st.Put(h.t.Context(), b); err != nil && !strings.Contains(err.Error(), server.ErrForgotten.Error()) {
		r.Fatal(err)
	}
}

// derive stores answers of whatever lags, some of them known from other streams.
func (h *usageHistory) derive(r *rapid.T) {
	tasks := kit.Try(h.st.Lagging(h.t.Context(), 9)).Must(r)
	list := make([]*server.Derivation, 0, len(tasks))
	for _, task := range tasks {
		d := &server.Derivation{Task: task, Position: place(h.t, h.st, task), Done: true}
		for range rapid.IntRange(0, 4).Draw(r, "answers") {
			x := answer(rapid.SampledFrom([]string{"1", "2", "3", "4", "5"}).Draw(r, "key"), rapid.Int64Range(0, 3).Draw(r, "output"))
			x.Sidechain = rapid.Bool().Draw(r, "sidechain")
			x.Model = rapid.SampledFrom([]string{"m", strings.Repeat("long", 900)}).Draw(r, "model")
			x.Tokens.Searches = rapid.SampledFrom([]int64{0, 0, 4}).Draw(r, "searches")
			x.Tokens.CacheRead = rapid.SampledFrom([]int64{0, 300_000}).Draw(r, "read")
			x.Time = start.Add(time.Duration(rapid.IntRange(-90, 90).Draw(r, "minutes")) * time.Minute)
			if rapid.IntRange(0, 9).Draw(r, "old") == 0 {
				x.Time = time.Date(1969, 12, 31, 23, 59, 59, 1000, time.UTC)
			}
			d.Answers = append(d.Answers, x)
		}
		list = append(list, d)
	}
	kit.Must(r, h.st.SaveDerived(h.t.Context(), list...))
}

func (h *usageHistory) reset(r *rapid.T) {
	kit.Must(r, h.st.ResetDerived(h.t.Context()))
}

// check compares sums with what they are sums of, for times and zones that fit half hours and that do not.
func (h *usageHistory) check(r *rapid.T) {
	minute := func(name string) time.Time {
		if rapid.Bool().Draw(r, name+" open") {
			return time.Time{}
		}
		return start.Add(time.Duration(rapid.IntRange(-120, 120).Draw(r, name)) * time.Minute)
	}
	q := server.UsageQuery{Since: minute("since"), Until: minute("until"),
		Zone:    time.Duration(rapid.IntRange(-4, 4).Draw(r, "zone")) * 15 * time.Minute,
		Project: rapid.SampledFrom([]string{"", "x", "p"}).Draw(r, "project"), User: rapid.Int64Range(0, 2).Draw(r, "user")}
	sums, exact := h.sums(r, q, false), h.sums(r, q, true)
	kit.Require(r, sums == exact, "%+v:\nsums\n%s\nanswers\n%s", q, sums, exact)
	h.checkTotals(r, server.UsageQuery{Since: q.Since, Until: q.Until, Zone: q.Zone})
}

// checkTotals compares sums over all owners with what they are sums of.
func (h *usageHistory) checkTotals(r *rapid.T, q server.UsageQuery) {
	if rapid.Bool().Draw(r, "days") {
		q.Since, q.Until = q.Since.Truncate(24*time.Hour), q.Until.Truncate(24*time.Hour)
	}
	by := rapid.SampledFrom([][]string{nil, {"day"}, {"day", "model", "long"}, {"hour"}, {"model"}, {"day", "hour"}}).Draw(r, "by")
	q.Model = rapid.SampledFrom([]string{"", "", "m"}).Draw(r, "model")
	sums := func(q server.UsageQuery) map[server.UsageRow]server.Tokens {
		rows := kit.Try(h.st.Usage(h.t.Context(), all, q)).Must(r)
		out := map[server.UsageRow]server.Tokens{}
		for _, x := range rows {
			t := x.Tokens
			if x.Session, x.Name, x.Tokens = "", "", (server.Tokens{}); t.Answers == 0 {
				r.Fatalf("%+v: a row of nothing", q)
			}
			out[x] = out[x].Add(t)
		}
		return out
	}
	exact := q
	q.By, exact.By = by, append(slices.Clone(by), "session")
	got, want := sums(q), sums(exact)
	kit.Require(r, maps.Equal(got, want), "%+v:\ntotals\n%v\nanswers\n%v", q, got, want)
}

// usageSums: whatever happens, sums of half hours are those of the answers.
func (s suite) usageSums(t *testing.T) {
	h := &usageHistory{sumHistory{t: t, st: s.open(t)}}
	steps := map[string]func(*rapid.T){"put": h.put, "derive": h.derive, "forget": h.forget, "again": h.again, "reset": h.reset,
		"sum up": h.sumUp}
	rapid.Check(t, func(r *rapid.T) {
		h.round++ // other sessions: what was forgotten does not come again
		for range 4 {
			h.put(r)
		}
		for _, name := range rapid.SliceOfN(rapid.SampledFrom([]string{"put", "put", "put", "derive", "derive", "derive",
			"forget", "again", "reset", "sum up", "sum up"}), 1, 12).Draw(r, "steps") {
			steps[name](r)
		}
		h.derive(r)
		h.check(r)
		for h.sumUpSome(r) {
		}
		h.check(r)
		h.check(r)
	})
}

// groupsOf lists all projects, in pages of two, and compares them with what one page of all has.
func groupsOf(t *testing.T, st full, scope server.Scope) []server.Group {
	t.Helper()
	return kit.Try(groupPages(t, st, scope)).Must(t)
}

func groupPages(t *testing.T, st full, scope server.Scope) (list []server.Group, err error) {
	whole, err := st.Groups(t.Context(), scope, server.GroupQuery{})
	if err != nil {
		return nil, err
	}
	for q := (server.GroupQuery{Limit: 2}); ; {
		page, err := st.Groups(t.Context(), scope, q)
		if err != nil {
			return nil, err
		}
		if list = append(list, page.List...); page.Next == "" {
			break
		}
		if q.After = page.Next; len(page.List) != q.Limit {
			return nil, fmt.Errorf("a page of %d projects has %d", q.Limit, len(page.List))
		}
	}
	if !slices.Equal(list, whole.List) || whole.Next != "" {
		return nil, fmt.Errorf("pages\n%+v\nall\n%+v", list, whole)
	}
	return list, nil
}

// sumHistory is a store to which anything happens that changes projects.
type sumHistory struct {
	t     *testing.T
	st    full
	n     int64 // of lines, and of generations
	round int
}

func (h *sumHistory) name(r *rapid.T) string {
	return fmt.Sprint("r", h.round, rapid.SampledFrom([]string{"a", "b", "b/agent-1", "c", "d"}).Draw(r, "session"))
}

func (h *sumHistory) head(r *rapid.T) server.Head {
	x := server.Head{SessionID: h.name(r), Epoch: "e", EOFNewline: true}
	x.Machine = rapid.SampledFrom([]string{"m1", "m1", "m2"}).Draw(r, "machine")
	x.ProjectHash = rapid.SampledFrom([]string{"", "x", "x", "y"}).Draw(r, "hash")
	x.Project = rapid.SampledFrom([]string{"", "p", "q"}).Draw(r, "project")
	x.Host = rapid.SampledFrom([]string{"", "h", "i"}).Draw(r, "host")
	if parent, _, ok := strings.Cut(x.SessionID, "/"); ok && rapid.Bool().Draw(r, "parent") {
		x.Parent = parent
	}
	return x
}

// put stores a line at the end, in a newer generation, or in another epoch; the stream's names may be others then.
func (h *sumHistory) put(r *rapid.T) {
	h.n++
	b := batch("", object(h.n, "{}"))
	b.Head = h.head(r)
	b.Owner = rapid.Int64Range(1, 2).Draw(r, "owner")
	b.Head.EndLine = h.n + 1
	b.Received = start.Add(time.Duration(rapid.IntRange(-3, 3).Draw(r, "hours")) * time.Hour)
	b.Head.EndOffset = rapid.SampledFrom([]int64{0, 40 * h.n}).Draw(r, "offset")
	if rapid.IntRange(0, 3).Draw(r, "rewind") == 0 {
		b.Head.Generation, b.Head.RewoundTo = h.n, rapid.Int64Range(0, h.n).Draw(r, "to")
	}
	if rapid.IntRange(0, 5).Draw(r, "epoch") == 0 {
		b.Head.Epoch = fmt.Sprint("e", h.n)
	}
	if err := h.st.Put(h.t.Context(), b); err != nil && !strings.Contains(err.Error(), server.ErrForgotten.Error()) {
		r.Fatal(err)
	}
}

// checkpoint comes from a stream that may have no lines, and tells names that were not known.
func (h *sumHistory) checkpoint(r *rapid.T) {
	h.n++
	b := &server.CheckpointBatch{Head: h.head(r), Owner: rapid.Int64Range(1, 2).Draw(r, "owner"), Received: start,
		List: []server.Checkpoint{mark(fmt.Sprint("c", h.n), 1)}}
	if err := h.st.PutCheckpoints(h.t.Context(), b); err != nil && !strings.Contains(err.Error(), server.ErrForgotten.Error()) {
		r.Fatal(err)
	}
}

// derive tells when a stream was written last: also an earlier time than before.
func (h *sumHistory) derive(r *rapid.T) {
	tasks := kit.Try(h.st.Lagging(h.t.Context(), rapid.IntRange(1, 9).Draw(r, "most"))).Must(r)
	list := make([]*server.Derivation, 0, len(tasks))
	for _, task := range tasks {
		d := &server.Derivation{Task: task, Position: place(h.t, h.st, task), Done: rapid.Bool().Draw(r, "done")}
		d.Summary.Ended = start.Add(time.Duration(rapid.IntRange(-9, 1).Draw(r, "ended")) * time.Hour)
		list = append(list, d)
	}
	kit.Must(r, h.st.SaveDerived(h.t.Context(), list...))
}

func (h *sumHistory) forget(r *rapid.T) {
	_, err := h.st.Forget(h.t.Context(), all, h.name(r), rapid.Int64Range(1, 2).Draw(r, "owner"), start)
	if err != nil && !strings.Contains(err.Error(), server.ErrNotFound.Error()) {
		r.Fatal(err)
	}
}

func (h *sumHistory) again(r *rapid.T) {
	kit.Must(r, h.st.Renew(h.t.Context(), h.n))
}

// retire removes lines, so that files that do not say how long they are get shorter.
func (h *sumHistory) retire(r *rapid.T) {
	what := rapid.SampledFrom([]string{server.RetireGenerations, server.RetireSessions}).Draw(r, "what")
	id, err := h.st.AddRetentionRule(h.t.Context(), server.RetentionRule{What: what, Action: server.ActionDrop, Age: day, By: "t", At: start})
	if err == nil {
		_, err = h.st.Retire(h.t.Context(), server.RetireOptions{By: "t", Now: start.AddDate(1, 0, 0)})
	}
	if err == nil {
		err = h.st.RemoveRetentionRule(h.t.Context(), id)
	}
	kit.Must(r, err)
}

func (h *sumHistory) sumUp(r *rapid.T) { h.sumUpSome(r) }

func (h *sumHistory) sumUpSome(r *rapid.T) (more bool) {
	return kit.Try(h.st.SumUp(h.t.Context())).Must(r)
}

// counted are the projects as their sessions have them, counted anew.
func (h *sumHistory) counted(r *rapid.T, scope server.Scope) []string {
	sums, newest := map[string]server.Group{}, map[string]int64{}
	found := kit.Try(h.st.Find(h.t.Context(), scope, server.SessionQuery{Page: server.Page{Limit: 10_000}, Agents: true})).Must(r)
	for _, s := range found.List {
		k := fmt.Sprint(s.Owner, "\x00", s.ProjectHash, "\x00", s.Machine)
		g := sums[k]
		if g.Bytes += s.Bytes; s.Parent == "" {
			g.Sessions++
		}
		if newest[k] == 0 || s.Active.After(g.Last) || s.Active.Equal(g.Last) && s.ID > newest[k] {
			newest[k] = s.ID
			g = server.Group{ProjectHash: s.ProjectHash, Project: s.Project, Cwd: s.Cwd, Machine: s.Machine, Host: s.Host,
				Owner: s.Owner, Sessions: g.Sessions, Bytes: g.Bytes, Last: s.Active}
		}
		sums[k] = g
	}
	return shown(slices.Collect(maps.Values(sums)))
}

func shown(list []server.Group) (out []string) {
	out = kit.Each(list, func(g server.Group) string { return fmt.Sprintf("%+v", g) })
	slices.Sort(out)
	return out
}

func (h *sumHistory) check(r *rapid.T) {
	for _, scope := range []server.Scope{all, {User: 1}, {User: 2}, {User: 3}} {
		list := kit.Try(groupPages(h.t, h.st, scope)).Must(r)
		for i := 1; i < len(list); i++ {
			if list[i].Last.After(list[i-1].Last) {
				r.Fatalf("%+v is behind %+v", list[i], list[i-1])
			}
		}
		got, want := shown(list), h.counted(r, scope)
		kit.Require(r, slices.Equal(got, want), "%+v: sums\n%s\ncounted\n%s", scope, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// projectSums: whatever happens, the sums of projects are those of their sessions, summed up or not.
func (s suite) projectSums(t *testing.T) {
	h := &sumHistory{t: t, st: s.open(t)}
	for i, name := range []string{"ann", "bob", "eve"} {
		u := addUser(t, h.st, name, server.Member)
		kit.Require(t, u.ID == int64(i+1), "%s has number %d", name, u.ID)
	}
	for _, x := range []server.Share{{Owner: 1, With: 2, ProjectHash: "x"}, {Owner: 1, With: 3, ProjectHash: "x"}, {Owner: 2, With: 3, ProjectHash: "y"}} {
		kit.Must(t, h.st.AddShare(t.Context(), x))
	}
	steps := map[string]func(*rapid.T){"put": h.put, "derive": h.derive, "forget": h.forget, "again": h.again, "sum up": h.sumUp,
		"retire": h.retire, "checkpoint": h.checkpoint}
	rapid.Check(t, func(r *rapid.T) {
		h.round++
		for range 3 {
			h.put(r)
		}
		for _, name := range rapid.SliceOfN(rapid.SampledFrom([]string{"put", "put", "put", "derive", "derive", "sum up", "sum up",
			"sum up", "forget", "again", "retire", "checkpoint"}), 1, 12).Draw(r, "steps") {
			steps[name](r)
		}
		h.check(r)
		for h.sumUpSome(r) {
		}
		h.check(r)
	})
}
