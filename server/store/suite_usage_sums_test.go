package store_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ccship/ccship/server"
)

// sums is what usage says by everything that sums know; exact makes it count answer by answer, for which it is
// asked by session too.
func (h *usageHistory) sums(r *rapid.T, q server.UsageQuery, exact bool) string {
	q.By = []string{"day", "hour", "project", "model", "machine", "user", "long"}
	if exact {
		q.By = append(q.By, "session")
	}
	rows, err := h.st.Usage(h.t.Context(), all, q)
	mustIn(r, err)
	sums := map[string]server.Tokens{}
	for _, r := range rows {
		key := fmt.Sprint(r.Day, r.Hour, r.Project, r.Model, r.Machine, r.User, r.Long)
		sums[key] = sums[key].Add(r.Tokens)
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, fmt.Sprint(key, sums[key]))
	}
	return strings.Join(out, "\n")
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
	tasks, err := h.st.Lagging(h.t.Context(), 9)
	mustIn(r, err)
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
	mustIn(r, h.st.SaveDerived(h.t.Context(), list...))
}

func (h *usageHistory) reset(r *rapid.T) {
	mustIn(r, h.st.ResetDerived(h.t.Context()))
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
	if sums, exact := h.sums(r, q, false), h.sums(r, q, true); sums != exact {
		r.Fatalf("%+v:\nsums\n%s\nanswers\n%s", q, sums, exact)
	}
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
		rows, err := h.st.Usage(h.t.Context(), all, q)
		mustIn(r, err)
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
	if got, want := sums(q), sums(exact); !maps.Equal(got, want) {
		r.Fatalf("%+v:\ntotals\n%v\nanswers\n%v", q, got, want)
	}
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
