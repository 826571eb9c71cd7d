//go:build linux

package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/corpus"
	"github.com/ccship/ccship/lab/bench/load"
)

// TestSenderIsWhole: what the sender sends, a real server stores byte for byte, rewinds included, and figures are there.
func TestSenderIsWhole(t *testing.T) {
	src, err := corpus.Standard()
	kit.Must(t, err)
	b := newBench(t, &world{source: src}, kit.Program(t, "ccship-server"), "SQLite")
	b.users(2)
	all := corpus.Plan{Seed: 3, Bytes: 1_500_000, Owners: 2}.Sessions()
	all[0].Rewound, all[0].Bytes = true, 200_000
	b.send(all)
	for _, s := range all {
		var view []string
		for _, chunk := range s.Chunks(src) {
			view = append(view[:chunk.RewoundTo:chunk.RewoundTo], chunk.Lines...)
			at := fmt.Sprintf("/api/sessions/%s/raw?generation=%d", url.PathEscape(s.ID), chunk.Generation)
			got, err := b.user(s.Owner).Get(context.Background(), at)
			if err != nil || string(got) != strings.Join(view, "\n")+"\n" {
				t.Errorf("%s, generation %d: %d bytes, %v", s.ID, chunk.Generation, len(got), err)
			}
		}
	}
	b.derived()
	if used := b.use(); used.CPU <= 0 || used.RSS <= 0 {
		t.Errorf("the server used %+v", used)
	}
	text, err := b.user(0).Get(context.Background(), "/api/search?q="+corpus.RareWord)
	if err != nil || !bytes.Contains(text, []byte(corpus.RareWord)) {
		t.Errorf("the planted word is not found: %v", err)
	}
	b.stop()
	if search, total := b.db.share(); search <= 0 || total < search || total > 4*b.db.size() {
		t.Errorf("%d of %d bytes are there to search, the file has %d", search, total, b.db.size())
	}
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
