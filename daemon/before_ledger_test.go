package daemon

import (
	"os"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestServerBeforeTheLedger: a server of the version before the ledger names neither its database, nor its version, nor
// how many writes it has, and has no such call. It gets everything: an import, live lines, a rewind, what is written
// while the daemon is off. Nothing is sent twice, and verify and status are well.
func TestServerBeforeTheLedger(t *testing.T) {
	w := newWorld(t)
	path := w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 40))
	w.start()
	holds := func(what string) {
		t.Helper()
		if r := w.sync(); !r.Done {
			t.Fatalf("%s: %+v", what, r)
		}
		text, err := os.ReadFile(path)
		kit.Must(t, err)
		if got := w.server.newest(sessionA); got != string(text) {
			t.Errorf("%s: the server has %d bytes, want %d", what, len(got), len(text))
		}
		if r := w.verify(); !r.Equal {
			t.Errorf("%s: verify %+v", what, r)
		}
		if s := w.status(); s.State != "watching" || len(s.Servers) != 1 || s.Servers[0].State != "ok" || s.Outbox.Dead != 0 {
			t.Errorf("%s: status %+v", what, s)
		}
	}
	holds("an import")
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 40, 60))
	holds("live lines")
	kit.Must(t, os.Truncate(path, int64(len(records("/home/kim/shop", 0, 30)))))
	holds("a rewind")
	w.stop()
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 30, 40))
	requests := len(w.server.order)
	w.start()
	holds("a restart")
	if n := len(w.server.order) - requests; n != 1 {
		t.Errorf("%d requests after the restart, want one", n)
	}
	if d := w.deep(); !d.Equal {
		t.Errorf("verify --deep: %+v", d)
	}
}
