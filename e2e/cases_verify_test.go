//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// report is what the tests read of `ccship verify --json`.
type report struct {
	SchemaVersion int `json:"schema_version"`
	Equal, Proven bool
	Files         int
	Lines         int64
	Differences   []struct {
		SessionID              string `json:"session_id"`
		Missing, Differ, Extra []struct{ First, Last int64 }
	}
}

func (w *world) report() (report, int) {
	w.t.Helper()
	out := w.ccship("verify", "--json")
	var r report
	if err := json.Unmarshal([]byte(out.stdout), &r); err != nil {
		w.t.Fatalf("verify --json: %v: exit %d, %q %q", err, out.code, out.stdout, out.stderr)
	}
	return r, out.code
}

func TestVerifyProves(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		c, _ := shipped(w, 70, 30)
		r, code := w.report()
		if code != 0 || !r.Equal || r.Files != 1 || r.Lines != 30 || r.Proven != (w.exact != nil) {
			t.Errorf("exit %d, report %+v", code, r)
		}
		w.look("", 0, "verify", c.session[:8])
		out := w.ccship("verify")
		if words := "acknowledged, not proven"; strings.Contains(out.stdout+out.stderr, words) != (w.plain != nil) {
			t.Errorf("%q on a plain server and only there; verify said %q", words, out.stdout+out.stderr)
		}
		w.gate.set(unreachable)
		eventually(t, "verify without a server exits with 4", time.Minute, func() bool {
			out = w.ccship("verify", "--timeout", "2s") // too short at first, where the daemon is slow to ask
			return w.exact == nil || out.code == 4
		})
	})
}

// asRows has a daemon send so few lines at once that the server does not pack them: their text is in its files then.
const asRows = "CCSHIP_MAX_ENTRIES_PER_REQUEST=5"

// TestVerifySeesAFlippedBit changes one byte in the server's database, behind everyone's back.
func TestVerifySeesAFlippedBit(t *testing.T) {
	w := aloneWorld(t)
	w.env = append(w.env, asRows)
	c, path := w.conversation(71)
	w.add(path, c.even(20, 1500))
	w.add(path, []byte(`{"type":"user","message":"MARKED-FOR-DAMAGE"}`+"\n"))
	w.add(path, c.even(20, 1500))
	w.startAndSync()
	w.verified()
	w.exact.proc.MustStop(w.t)
	data := w.read(w.exact.database())
	at := bytes.Index(data, []byte("MARKED-FOR-DAMAGE"))
	if at < 0 || bytes.Count(data, []byte("MARKED-FOR-DAMAGE")) != 1 {
		t.Fatalf("the line is in the database %d times, want once", bytes.Count(data, []byte("MARKED-FOR-DAMAGE")))
	}
	data[at] ^= 0x20
	must(t, os.WriteFile(w.exact.database(), data, 0o600))
	w.exact.start()
	r, code := w.report()
	if code != 1 || r.Equal || len(r.Differences) != 1 {
		t.Fatalf("exit %d, report %+v; want exit 1 and one difference", code, r)
	}
	d := r.Differences[0]
	if d.SessionID != c.session || len(d.Differ) != 1 || d.Differ[0].First != 20 || d.Differ[0].Last != 20 || len(d.Missing)+len(d.Extra) != 0 {
		t.Errorf("difference %+v, want line 20 of %s", d, c.session)
	}
	w.look("line 21: other bytes", 1, "verify")
}

// TestVerifyAfterALostDatabase: the server lost its database after it had acknowledged everything. verify notices that
// before it compares, and the new database has everything when it returns.
func TestVerifyAfterALostDatabase(t *testing.T) {
	w := aloneWorld(t)
	c, path := shipped(w, 72, 30)
	w.exact.proc.MustStop(w.t)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(w.exact.database() + suffix); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	key := w.exact.key
	fresh := newShipServerKey(w.exact)
	w.writeKey(fresh)
	if key == fresh {
		t.Fatal("two servers made the same key")
	}
	eventually(t, "verify finds everything on the server", 2*time.Minute, func() bool {
		r, code := w.report()
		return code == 0 && r.Equal
	})
	w.same(c.session, path)
}

// newShipServerKey makes a key in a fresh database and starts the server on it.
func newShipServerKey(s *shipServer) string {
	s.home.t.Helper()
	out := s.home.runProgram(kit.Program(s.home.t, "ccship-server"), "key", "create", "--name", "again", "--store", s.store())
	if out.code != 0 {
		s.home.t.Fatalf("key create: exit %d, %s", out.code, out.stderr)
	}
	s.key = strings.TrimSpace(out.stdout)
	s.start()
	return s.key
}
