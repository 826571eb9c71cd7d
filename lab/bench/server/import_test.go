//go:build linux

package server_test

import (
	"context"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/corpus"
	"github.com/ccship/ccship/lab/bench/gauge"
	"github.com/ccship/ccship/lab/bench/load"
)

const storage, importing = "Storage", "Import and deriving"

// send imports sessions and returns how many bytes they have.
func (b *bench) send(all []corpus.Session) int64 {
	b.t.Helper()
	whole := bytesOf(all)
	told := time.Now()
	in := &load.Import{Source: b.source, User: b.user, Patience: 2 * time.Minute}
	stop := load.Watch(func() struct{} {
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			say("    %.0f of %.0f MB sent, %g streams left to derive", float64(in.Bytes())/1e6, float64(whole)/1e6, b.lag())
		}
		return struct{}{}
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
func (b *bench) imports(r *figures, plan corpus.Plan, all []corpus.Session) int64 {
	b.t.Helper()
	b.users(plan.OwnerCount())
	b.db.worn(bytesOf(all))
	wal := b.db.wal()
	var raw int64
	ingest := b.measure(func() { raw = b.send(all) })
	say("    sent in %.0f s, %.1f CPU-s", ingest.took.Seconds(), ingest.cpu())
	derive := b.measure(b.derived)
	say("    derived after %.0f s more, %.1f CPU-s", derive.took.Seconds(), derive.cpu())
	rest := b.measure(func() { b.quiet(); b.db.flush() })
	gb := float64(raw) / 1e9
	r.Add(importing, "ingest until all is sent", ingest.cpu()/gb, "CPU-s/GB")
	r.Add(importing, "… of it the server", ingest.server.CPU.Seconds()/gb, "CPU-s/GB")
	r.Add(importing, "then, until all is derived", derive.cpu()/gb, "CPU-s/GB")
	r.Add(importing, "then, until all is quiet", rest.cpu()/gb, "CPU-s/GB")
	r.Add(importing, "together", (ingest.cpu()+derive.cpu()+rest.cpu())/gb, "CPU-s/GB")
	r.Aim("≤ 45 SQLite, ≤ 55 PostgreSQL")
	r.Add(importing, "time until derived ÷ time of ingest", (ingest.took+derive.took).Seconds()/ingest.took.Seconds(), "")
	r.Aim("≤ 1.3")
	r.Add(importing, "ingest on this machine, shared with the sender", float64(raw)/1e6/ingest.took.Seconds(), "MB/s")
	r.Add(importing, "memory of the server at the end", float64(b.server().RSS)/(1<<20), "MiB")
	written := ingest.server.Stored + ingest.base.Stored + derive.server.Stored + derive.base.Stored +
		rest.server.Stored + rest.base.Stored
	b.storage(r, raw, written, wal)
	return raw
}

// storage is what lies on the disk after an import.
func (b *bench) storage(r *figures, raw, written, wal int64) {
	b.t.Helper()
	each := b.db.tables()
	search, total := share(each)
	part := func(n int64) float64 { return float64(n) / float64(raw) }
	r.Add(storage, "raw bytes", float64(raw)/1e6, "MB")
	r.Add(storage, "database ÷ raw", part(b.db.size()), "")
	r.Aim("≤ 0.45")
	r.Add(storage, "… without search", part(total-search), "")
	r.Aim("≤ 0.30")
	r.Add(storage, "written ÷ raw", part(written), "")
	r.Aim("≤ 1.5")
	if wal >= 0 {
		r.Add(storage, "WAL ÷ raw", part(b.db.wal()-wal), "")
	}
	for i, t := range each {
		if i < 8 && part(t.bytes) >= .002 {
			r.Add(storage, "table "+t.name+" ÷ raw", part(t.bytes), "")
		}
	}
}
