//go:build linux

package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/corpus"
	"github.com/ccship/ccship/lab/bench/load"
)

// TestSenderIsWhole: what the sender sends, a real server stores byte for byte, rewinds and lines that are no JSON
// included, and the comparison sees a line that is missing and one that differs.
func TestSenderIsWhole(t *testing.T) {
	src, err := corpus.Standard()
	kit.Must(t, err)
	b := newBench(t, &world{source: src}, kit.Program(t, "ccship-server"), "SQLite")
	b.users(2)
	all := corpus.Plan{Seed: 3, Bytes: 1_500_000, Owners: 2}.Sessions()
	if !slices.ContainsFunc(all, func(s corpus.Session) bool { return len(s.Chunks(src)) > 1 }) {
		all[0].Rewound, all[0].Bytes = true, 200_000
	}
	b.send(all)
	if lost, wrong := b.compare(all); lost+wrong > 0 {
		t.Errorf("%d transcripts miss lines, %d differ", lost, wrong)
	}
	longer := all[0]
	longer.Bytes += 100_000
	if lost, _ := b.compare([]corpus.Session{longer}); lost == 0 {
		t.Error("the comparison does not see that lines are missing")
	}
	other := corpus.Plan{Seed: 4}.One(1, 2_000) // shorter than what is stored under its name
	other.ID, other.Owner = all[0].ID, all[0].Owner
	if _, wrong := b.compare([]corpus.Session{other}); wrong == 0 {
		t.Error("the comparison does not see other lines")
	}
	b.derived()
	if used := b.use(); used.CPU <= 0 || used.RSS <= 0 {
		t.Errorf("the server used %+v", used)
	}
	if search, total := share(b.db.tables()); search <= 0 || total < search || total > 4*b.db.size() {
		t.Errorf("%d of %d bytes are there to search, the file has %d", search, total, b.db.size())
	}
	text, err := b.user(0).Get(context.Background(), "/api/search?q="+corpus.RareWord)
	if err != nil || !bytes.Contains(text, []byte(corpus.RareWord)) {
		t.Errorf("the planted word is not found: %v", err)
	}
	if bytes := b.forget(1); bytes < 100_000 {
		t.Errorf("%d bytes of the second user are forgotten", bytes)
	}
	if bytes := b.forget(1); bytes != 0 {
		t.Errorf("%d bytes of the second user are still there", bytes)
	}
	b.stop()
	execute(t, b.program, "verify", "--store", b.db.store())
}

// TestLiveCounts: every line that a daemon wrote is stored once, and is counted.
func TestLiveCounts(t *testing.T) {
	src, err := corpus.Standard()
	kit.Must(t, err)
	b := newBench(t, &world{source: src}, kit.Program(t, "ccship-server"), "SQLite")
	b.users(2)
	all := corpus.Plan{Seed: 4, Owners: 2}.Many(6)
	l := &load.Live{Source: src, User: b.user, Sessions: all, Every: 50 * time.Millisecond}
	lived := l.Run(context.Background(), time.Second)
	text, err := b.owner.Get(context.Background(), "/api/sessions?limit=100")
	kit.Must(t, err)
	var page struct{ Sessions []struct{ Lines int64 } }
	kit.Must(t, json.Unmarshal(text, &page))
	var stored int64
	for _, s := range page.Sessions {
		stored += s.Lines
	}
	if lived.Lines == 0 || lived.Lines != stored || lived.Failed > 0 || lived.P99 < lived.P50 {
		t.Errorf("%+v, the server stored %d lines", lived, stored)
	}
}
