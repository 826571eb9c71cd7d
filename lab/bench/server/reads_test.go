//go:build linux

package server_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/corpus"
	"github.com/ccship/ccship/lab/bench/load"
)

const readsCPU = "CPU of an answer, server and database"

// read is one question to the server.
type read struct {
	name string
	as   *load.Client
	path string
}

// queries are the questions that everybody asks.
func (b *bench) queries(who string, as *load.Client) []read {
	day := func(back int) string { return time.Date(2026, 11, 20-back, 0, 0, 0, 0, time.UTC).Format(time.DateOnly) }
	all := []read{
		{"list", as, "/api/sessions?order=recent&limit=100"},
		{"groups", as, "/api/groups"},
		{"usage by day, 30 days", as, "/api/usage?by=day&since=" + day(30)},
		{"usage by day, a year", as, "/api/usage?by=day&since=" + day(365)},
		{"home page", as, "/"},
		{"usage page", as, "/usage"},
		{"usage page of a year", as, "/usage?range=365"},
	}
	for name, text := range map[string]string{
		"rare": corpus.RareWord, "frequent": corpus.Frequent, "two characters": corpus.TwoChars,
		"Korean": corpus.KoreanWord, "code": corpus.CodeText,
	} {
		all = append(all, read{"search, " + name, as, "/api/search?limit=50&q=" + url.QueryEscape(text)})
	}
	slices.SortStableFunc(all[7:], func(a, b read) int { return strings.Compare(a.name, b.name) })
	for i := range all {
		all[i].name += ", " + who
	}
	return all
}

// reads measures what answers cost.
func (b *bench) reads(r *figures, plan corpus.Plan) {
	b.t.Helper()
	b.users(5)
	all := b.questions(plan)
	before := b.use()
	kit.Pass(3 * time.Second)
	idle := b.use().Sub(before).CPU.Seconds() / 3 // a second, for nothing
	for _, q := range all {
		cpu, err := b.ask(q, idle)
		if err == nil && cpu == 0 { // the database did something else just before, and ended it
			cpu, err = b.ask(q, idle)
		}
		if err != nil {
			say("    no answer: %s: %v", q.name, err)
			continue
		}
		r.Add(readsCPU, q.name, cpu*1000, "ms").Target = "≤ 300 ms"
	}
}

// questions are all that is asked: as owner, as a member, and the pages of long sessions.
func (b *bench) questions(plan corpus.Plan) []read {
	b.t.Helper()
	pages := load.NewClient("http://"+b.listen, b.ownerKey, 8)
	b.t.Cleanup(pages.Close)
	kit.Must(b.t, pages.Login(context.Background()))
	member := load.NewClient("http://"+b.listen, b.keys[1], 8) // one who writes Korean
	b.t.Cleanup(member.Close)
	kit.Must(b.t, member.Login(context.Background()))
	all := append(b.queries("as owner", pages), b.queries("as member", member)...)
	for i, mb := range b.pages {
		s := plan.One(i, int64(mb)*1_000_000)
		say("    sending a session of %d MB", mb)
		b.send([]corpus.Session{s})
		b.derived()
		at := "/sessions/" + url.PathEscape(s.ID)
		all = append(all, read{fmt.Sprintf("session page of %d MB", mb), pages, at},
			read{fmt.Sprintf("session page of %d MB, its end", mb), pages, at + "?from=end"})
	}
	kit.Pass(sumsEvery)
	b.quiet()
	return all
}

// sumsEvery is how often the server puts what changed into its sums. Until then answers add it, stream by stream.
const sumsEvery = 30 * time.Second

// ask asks a question again and again, and returns the processor time of an answer in seconds.
func (b *bench) ask(q read, idle float64) (cpu float64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if _, err := q.as.Get(ctx, q.path); err != nil { // caches are warm, as they are for what people ask often
		return 0, err
	}
	n, before, began := 0, b.use(), time.Now()
	for ; n < 3 || n < 20 && time.Since(began) < 2*time.Second; n++ {
		if _, err := q.as.Get(ctx, q.path); err != nil {
			return 0, err
		}
	}
	spent := b.use().Sub(before).CPU.Seconds() - idle*time.Since(began).Seconds()
	return max(spent, 0) / float64(n), nil
}
