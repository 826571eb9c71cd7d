//go:build unix

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/state/kv"
)

// incompressible is n bytes of records that no compression makes much smaller.
func incompressible(cwd string, n int) []byte {
	rng := rand.New(rand.NewPCG(7, 7))
	var data []byte
	for len(data) < n {
		data = fmt.Appendf(data, `{"type":"user","cwd":%q,"message":{"content":"`, cwd)
		for range 400 {
			data = fmt.Appendf(data, "%016x", rng.Uint64())
		}
		data = append(data, "\"}}\n"...)
	}
	return data
}

// TestOutboxFull: at the cap reading stops, status says so, and it goes on by itself.
func TestOutboxFull(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.configure("outbox_cap = \"2MiB\"\n")
		w.env = append(w.env, "GOMAXPROCS=2") // as many read at once
		w.gate.set(refuse(503))
		streams := map[string]string{}
		content := incompressible(w.cwd(), 1<<20)
		for i := range 24 {
			c, path := w.conversation(uint64(800 + i))
			w.add(path, content)
			streams[c.session] = path
		}
		w.start()
		s := w.until("status says full", func(s status) bool { return s.State == "full" })
		// Each worker may have had its turn, of a megabyte or so, when the cap was reached.
		kit.Check(t, s.Files.ReadBytes < s.Files.Bytes && s.Outbox.Stored <= 8<<20,
			"%d of %d bytes were read, %d are stored: reading went on beyond the cap", s.Files.ReadBytes, s.Files.Bytes, s.Outbox.Stored)
		w.gate.set(nil)
		w.sync()
		for stream, path := range streams {
			w.same(stream, path)
		}
		if s := w.status(); s.State == "full" || s.Outbox.Entries != 0 {
			t.Errorf("afterwards the state is %q with %d entries waiting", s.State, s.Outbox.Entries)
		}
		w.verified()
	})
}

// TestNoServerYet: without a server nothing is queued; with one everything is sent.
func TestNoServerYet(t *testing.T) {
	w := aloneWorld(t)
	url := w.url
	w.url = ""
	c, path := w.conversation(81)
	w.add(path, c.even(20, 1500))
	w.start()
	s := w.until("status says that there is no server", func(s status) bool { return s.State == "no_server" && s.Files.Tracked == 1 })
	kit.Check(t, s.Outbox.Entries == 0, "%d entries are queued without a server", s.Outbox.Entries)
	w.d.MustStop(w.t)
	w.url = url
	w.startAndSync()
	w.proven(c.session, path)
}

// TestServerChanged: another server gets every line from the first one on.
func TestServerChanged(t *testing.T) {
	w, c, path := aloneShipped(t, 82, 20)
	w.d.MustStop(w.t)
	other := plainWorld(t)
	other.plain.key = w.key
	w.url = other.url
	w.startAndSync()
	for _, wrong := range objectsMissing(w.read(path), other.plain.lines(c.session)) {
		t.Error(wrong)
	}
}

// TestHistory goes to servers that speak the extension, and to no other.
func TestHistory(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		history := fmt.Sprintf(`{"display":"fix it","pastedContents":{},"timestamp":1787216400101,"project":%q,"sessionId":"x"}`+"\n", w.cwd())
		must(t, os.WriteFile(w.dir+"/.claude/history.jsonl", []byte(history), 0o600))
		c, path := shipped(w, 83, 10)
		w.proven(c.session, path)
		if w.plain != nil {
			names := w.plain.names()
			kit.Check(t, len(names) == 1, "a plain server got the sessions %v", names)
			return
		}
		code, body := w.exact.get("/api/sessions")
		kit.Check(t, code == 200 && contains(`"history-`, string(body)), "ccship-server has no history: %d %s", code, body)
	})
}

// markVersion makes a state file one of another schema.
func markVersion(t *testing.T, file string, version byte) {
	t.Helper()
	db := kit.Try(bbolt.Open(file, 0o600, &bbolt.Options{NoFreelistSync: true})).Must(t)
	must(t, db.Update(func(tx *bbolt.Tx) error {
		meta := tx.Bucket([]byte(kv.BucketMeta))
		return errors.Join(meta.Put([]byte("schema"), []byte{0, 0, 0, version}), kv.SumRows(tx))
	}))
	must(t, db.Close())
}

// TestStateOfAnotherVersion is refused and left as it is, so that going back to the other program loses nothing.
func TestStateOfAnotherVersion(t *testing.T) {
	w, c, path := aloneShipped(t, 84, 20)
	w.d.MustStop(w.t)
	file := stateFile(w.home)
	ours := w.read(file)
	for version, says := range map[byte]string{0x63: "run the newer ccship", 1: "everything is then sent anew"} {
		must(t, os.WriteFile(file, ours, 0o600))
		markVersion(t, file, version)
		other := w.read(file)
		p := w.launch(kit.Program(t, "ccship"), "run")
		eventually(t, "the daemon refuses the state", time.Minute, p.Ended)
		kit.Equal(t, fmt.Sprintf("version %d: exit", version), p.Code(), 1)
		said := p.Log.String()
		kit.Check(t, contains(says, said) && contains("hint: ", said), "version %d: it said %q; want a line on the version, and a hint", version, said)
		kit.Check(t, bytes.Equal(w.read(file), other), "version %d: the state file was changed", version)
	}
	must(t, os.WriteFile(file, ours, 0o600))
	w.add(path, c.even(1, 900))
	w.startAndSync()
	w.entriesSent(1)
	w.verified()
}
