//go:build linux

package server_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/corpus"
	"github.com/ccship/ccship/lab/bench/gauge"
	"github.com/ccship/ccship/lab/bench/load"
)

// send imports sessions and returns how many bytes they have.
func (b *bench) send(all []corpus.Session) int64 {
	b.t.Helper()
	in := &load.Import{Source: b.source, User: b.user, Patience: 2 * time.Minute}
	told := time.Now()
	stop := load.Watch(func() {
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			say("    %.0f MB sent, %g streams left to derive", float64(in.Bytes())/1e6, b.lag())
		}
	})
	err := in.Run(context.Background(), all)
	stop()
	kit.Must(b.t, err)
	return in.Bytes()
}

// phase is what was used in a part of an import.
type phase struct {
	took         time.Duration
	server, base gauge.Use
}

func (b *bench) measure(do func()) phase {
	server, base, began := b.server(), b.db.use(), time.Now()
	do()
	return phase{time.Since(began), b.server().Sub(server), b.db.use().Sub(base)}
}

func (p phase) cpu() float64 { return (p.server.CPU + p.base.CPU).Seconds() }

// imports measures a first import, what is derived of it, and what both leave on the disk.
func (b *bench) imports(r *figures, plan corpus.Plan, all []corpus.Session) {
	b.t.Helper()
	const importing, storage = "Import and deriving", "Storage"
	b.users(plan.OwnerCount())
	b.db.worn(plan.Bytes)
	var raw int64
	ingest := b.measure(func() { raw = b.send(all) })
	derive := b.measure(b.derived)
	rest := b.measure(func() { b.quiet(); b.db.flush() })
	gb := float64(raw) / 1e9
	r.Add(importing, "ingest until all is sent", ingest.cpu()/gb, "CPU-s/GB")
	r.Add(importing, "… of it the server", ingest.server.CPU.Seconds()/gb, "CPU-s/GB")
	r.Add(importing, "then, until all is derived", derive.cpu()/gb, "CPU-s/GB")
	r.Add(importing, "then, until all is quiet", rest.cpu()/gb, "CPU-s/GB")
	together := r.Add(importing, "together", (ingest.cpu()+derive.cpu()+rest.cpu())/gb, "CPU-s/GB")
	together.Target = "≤ 45 SQLite, ≤ 55 PostgreSQL"
	r.Add(importing, "memory of the server at the end", float64(b.server().RSS)/(1<<20), "MiB")
	part := func(n int64) float64 { return float64(n) / float64(raw) }
	r.Add(storage, "raw bytes", float64(raw)/1e6, "MB")
	r.Add(storage, "database ÷ raw, while the server runs", part(b.db.size()), "")
	b.stop()
	r.Add(storage, "… at rest", part(b.db.size()), "").Target = "≤ 0.45"
	search, total := b.db.share()
	r.Add(storage, "… without search", part(total-search), "").Target = "≤ 0.30"
	began := time.Now()
	b.start()
	r.Add(storage, "start until it answers", time.Since(began).Seconds(), "s").Target = "≤ 2 s at 10 GB"
	var written int64
	for _, p := range []phase{ingest, derive, rest} {
		written += p.server.Stored + p.base.Stored
	}
	r.Add(storage, "written ÷ raw", part(written), "").Target = "≤ 1.5"
}

// lives measures n daemons that write a line a second each.
func (b *bench) lives(r *figures, n int) {
	b.t.Helper()
	const begins = 5 * time.Second // until all sessions have begun
	b.users(5)
	all := corpus.Plan{Seed: 100 + uint64(n), Owners: len(b.members)}.Many(n)
	for i := range all {
		all[i].Start = time.Now()
	}
	b.derived()
	b.quiet()
	l := &load.Live{Source: b.source, User: b.user, Sessions: all, Every: time.Second, Begin: begins}
	d := time.Duration(b.seconds) * time.Second
	done := make(chan load.Lived)
	go func() { done <- l.Run(context.Background(), begins+d) }()
	kit.Pass(begins)
	before := b.use()
	var peak int64
	var lag float64
	stop := load.Watch(func() { peak, lag = max(peak, b.server().RSS), max(lag, b.lag()) })
	lived := <-done
	stop()
	used := b.use().Sub(before).CPU
	drained := b.measure(b.derived)
	group := fmt.Sprintf("%d daemons, a line a second each", n)
	r.Add(group, "posts a second", float64(lived.Posts)/d.Seconds(), "")
	r.Add(group, "failed", float64(lived.Failed), "").Target = "0"
	r.Add(group, "server and database, CPU a post", used.Seconds()*1000/float64(max(lived.Posts, 1)), "ms").Target = "≤ 1 ms"
	r.Add(group, "p50 of a post", float64(lived.P50)/1e6, "ms")
	r.Add(group, "p99 of a post", float64(lived.P99)/1e6, "ms").Target = "≤ 500 ms"
	r.Add(group, "most streams that wait to be derived", lag, "")
	r.Add(group, "seconds to derive the rest", drained.took.Seconds(), "s")
	r.Add(group, "memory of the server, most", float64(peak)/(1<<20), "MiB").Target = "≤ 250 MiB"
}
