//go:build linux

package server_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/corpus"
)

// lists measures lists of many small sessions.
func (b *bench) lists(r *figures) {
	b.t.Helper()
	group := fmt.Sprintf("Lists of %d sessions: CPU of an answer", b.many)
	all := corpus.Plan{Seed: 5}.Many(b.many)
	say("    sending %d sessions", b.many)
	b.users(max(5, b.many/650))
	raw := b.send(all)
	b.derived()
	b.quiet()
	r.Add(group, "database, of one session", float64(b.db.size())/float64(b.many), "bytes")
	r.Add(group, "raw bytes, of one session", float64(raw)/float64(b.many), "bytes")
	pages := b.pages
	b.pages = nil
	defer func() { b.pages = pages }()
	before := b.use()
	kit.Pass(3 * time.Second)
	idle := b.use().Sub(before).CPU.Seconds() / 3
	for _, q := range b.questions(corpus.Plan{Seed: 1}) {
		if strings.HasPrefix(q.name, "search") {
			continue
		}
		cpu, wall, err := b.ask(q, idle)
		if err != nil {
			r.note("no answer: %s: %v", q.name, err)
			continue
		}
		r.Add(group, q.name, cpu*1000, "ms")
		if strings.HasPrefix(q.name, "list") || strings.HasPrefix(q.name, "groups") {
			r.Aim("≤ 30 ms")
		}
		say("    %-45s %8.1f ms CPU %8.1f ms", q.name, cpu*1000, wall*1000)
	}
	b.stop()
}
