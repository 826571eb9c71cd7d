//go:build linux

package server_test

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/corpus"
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
