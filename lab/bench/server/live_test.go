//go:build linux

package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/corpus"
	"github.com/ccship/ccship/lab/bench/load"
)

const (
	quietFor = 6 * time.Second // of the daemons that are asked about
	begins   = 5 * time.Second // until all sessions have begun
)

// moment is what is looked at each second while daemons write.
type moment struct {
	rss     int64
	lag     float64
	waiting int64
}

// lives measures n daemons that write a line a second each.
func (b *bench) lives(r *figures, n int) {
	b.t.Helper()
	b.users(5)
	group := fmt.Sprintf("%d daemons, a line a second each", n)
	all := corpus.Plan{Seed: 100 + uint64(n), Owners: len(b.members)}.Many(n)
	for i := range all {
		all[i].Start = time.Now()
	}
	b.derived()
	b.quiet()
	l := &load.Live{Source: b.source, User: b.user, Sessions: all, Every: time.Second,
		Begin: begins, Quiet: min(50, n/5), QuietFor: quietFor}
	d := time.Duration(b.seconds) * time.Second
	done := make(chan load.Lived)
	go func() { done <- l.Run(context.Background(), begins+d) }()
	kit.Pass(begins)
	before, database := b.server(), b.db.use()
	stop := load.Watch(func() moment { return moment{b.server().RSS, b.lag(), l.Waiting()} })
	kit.Pass(d - 500*time.Millisecond) // the others still write
	late := b.behind(all[:l.Quiet])
	lived := <-done
	seen := stop()
	used := b.server().Sub(before).CPU + b.db.use().Sub(database).CPU
	drained := b.measure(b.derived)
	var peak int64
	var lag float64
	for _, m := range seen {
		peak, lag = max(peak, m.rss), max(lag, m.lag)
	}
	r.Add(group, "posts a second", float64(lived.Posts)/d.Seconds(), "")
	r.Add(group, "lines stored a second", float64(lived.Lines)/d.Seconds(), "")
	if middle := len(seen) / 2; middle > 0 {
		r.Add(group, "lines that wait in daemons, at half time", float64(seen[middle].waiting), "")
	}
	r.Add(group, "… at the end", float64(lived.Waiting), "")
	r.Aim("flat")
	r.Add(group, "refused with 503; failed", float64(lived.Refused+lived.Failed), "")
	r.Add(group, "server and database, CPU a post", used.Seconds()*1000/float64(max(lived.Posts, 1)), "ms")
	r.Aim("≤ 1 ms")
	r.Add(group, "… a line, derived or not", used.Seconds()*1000/float64(max(lived.Lines, 1)), "ms")
	r.Add(group, "p50 of a post", float64(lived.P50)/1e6, "ms")
	r.Add(group, "p99 of a post", float64(lived.P99)/1e6, "ms")
	r.Aim(map[bool]string{true: "≤ 500 ms", false: "≤ 50 ms"}[n > 100])
	r.Add(group, "… in the first seconds, when all sessions are new", float64(lived.BeginP99)/1e6, "ms")
	r.Add(group, fmt.Sprintf("of %d streams, not derived 5 s after their last line", l.Quiet), float64(late), "")
	r.Aim("0")
	r.Add(group, "most streams that wait to be derived", lag, "")
	r.Add(group, "seconds to derive the rest", drained.took.Seconds(), "s")
	r.Add(group, "memory of the server, most", float64(peak)/(1<<20), "MiB")
	r.Aim("≤ 250 MiB")
	say("    %d posts, p99 %s, %d of %d streams late, %g waited, %.2f ms CPU a post", lived.Posts, lived.P99, late, l.Quiet,
		lag, used.Seconds()*1000/float64(max(lived.Posts, 1)))
}

// behind is how many of some sessions are not wholly derived.
func (b *bench) behind(all []corpus.Session) (n int) {
	for _, s := range all {
		var answer struct{ Lagging bool }
		text, err := b.user(s.Owner).Get(context.Background(), "/api/drops?session="+url.QueryEscape(s.ID))
		if err != nil || json.Unmarshal(text, &answer) != nil || answer.Lagging {
			n++
		}
	}
	return n
}
