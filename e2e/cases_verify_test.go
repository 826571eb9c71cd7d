//go:build unix

package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
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
	err := json.Unmarshal([]byte(out.stdout), &r)
	kit.Require(w.t, err == nil, "verify --json: %v: exit %d, %q %q", err, out.code, out.stdout, out.stderr)
	return r, out.code
}

func TestVerifyProves(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		c, _ := shipped(w, 70, 30)
		r, code := w.report()
		kit.Check(t, code == 0 && r.Equal && r.Files == 1 && r.Lines == 30 && r.Proven == (w.exact != nil),
			"exit %d, report %+v", code, r)
		w.look("", 0, "verify", c.session[:8])
		out := w.ccship("verify")
		kit.Equal(t, "on a plain server and only there; verify said "+out.stdout+out.stderr,
			strings.Contains(out.stdout+out.stderr, "acknowledged, not proven"), (w.plain != nil))
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
	kit.Require(t, at >= 0 && bytes.Count(data, []byte("MARKED-FOR-DAMAGE")) == 1,
		"the line is in the database %d times, want once", bytes.Count(data, []byte("MARKED-FOR-DAMAGE")))
	data[at] ^= 0x20
	must(t, os.WriteFile(w.exact.database(), data, 0o600))
	w.exact.start()
	r, code := w.report()
	kit.Require(t, code == 1 && !r.Equal && len(r.Differences) == 1,
		"exit %d, report %+v; want exit 1 and one difference", code, r)
	d := r.Differences[0]
	kit.Check(t, d.SessionID == c.session && len(d.Differ) == 1 && d.Differ[0].First == 20 && d.Differ[0].Last == 20 && len(d.Missing)+len(d.Extra) == 0,
		"difference %+v, want line 20 of %s", d, c.session)
	w.look("line 21: other bytes", 1, "verify")
}

// TestVerifyAfterALostDatabase: the server lost its database after it had acknowledged everything. verify notices that
// before it compares, and the new database has everything when it returns.
func TestVerifyAfterALostDatabase(t *testing.T) {
	w, c, path := aloneShipped(t, 72, 30)
	w.exact.proc.MustStop(w.t)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		err := os.Remove(w.exact.database() + suffix)
		kit.Require(t, err == nil || os.IsNotExist(err), "%v", err)
	}
	key := w.exact.key
	fresh := newShipServerKey(w.exact)
	w.writeKey(fresh)
	kit.Require(t, key != fresh, "two servers made the same key")
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
	kit.Require(s.home.t, out.code == 0, "key create: exit %d, %s", out.code, out.stderr)
	s.key = strings.TrimSpace(out.stdout)
	s.start()
	return s.key
}

// unequal demands that `ccship verify` exits with 1 and prints all of some words.
func (w *world) unequal(words ...string) {
	w.t.Helper()
	out := w.ccship("verify")
	kit.Check(w.t, out.code == 1 && !strings.HasPrefix(out.stdout, "equal"),
		"verify: exit %d, want 1\n%s%s", out.code, out.stdout, out.stderr)
	for _, word := range words {
		kit.Check(w.t, strings.Contains(out.stdout, word), "verify does not say %q:\n%s", word, out.stdout)
	}
}

// TestRepairOfALine: a line that is deleted from the server's database is named, sent again, and proven.
func TestRepairOfALine(t *testing.T) {
	w, c, path := aloneShipped(t, 2100, 40)
	other, otherPath := shipped(w, 2101, 40)
	w.alter("DELETE FROM lines WHERE line = 30 AND stream = (SELECT id FROM streams WHERE session_id = '" + c.session + "')")
	w.unequal(c.session, "line 31: not on the server", "`ccship verify --repair`")
	before := w.status().Sent.Entries
	out := w.ccship("verify", "--repair")
	kit.Check(t, out.code == 0 && strings.HasPrefix(out.stdout, "equal") && strings.Contains(out.stdout, "sent again: 10 lines of 1 transcript"),
		"verify --repair: exit %d\n%s%s", out.code, out.stdout, out.stderr)
	kit.Equal(t, "lines were sent", w.status().Sent.Entries-before, 10)
	w.verified()
	w.same(c.session, path)
	w.same(other.session, otherPath)
	w.add(path, c.even(5, 900)) // it goes on
	w.sync()
	w.same(c.session, path)
	w.look("", 0, "verify", "--deep")
}

// TestRepairOfASession: everything of a session is lost on the server, and sent again.
func TestRepairOfASession(t *testing.T) {
	w, c, path := aloneShipped(t, 2110, 40)
	w.alter("DELETE FROM lines")
	w.unequal(c.session, "lines 1–40: not on the server")
	out := w.ccship("verify", "--repair", c.session[:8])
	kit.Check(t, out.code == 0 && strings.Contains(out.stdout, "sent again: 40 lines of 1 transcript"),
		"repair: exit %d\n%s%s", out.code, out.stdout, out.stderr)
	w.syncVerified()
	w.same(c.session, path)
	out = w.ccship("verify", "--repair")
	kit.Check(t, out.code == 0 && !strings.Contains(out.stdout, "sent again"), "a second repair: exit %d\n%s%s", out.code, out.stdout, out.stderr)
	out = w.ccship("verify", "--repair", "nosuch")
	kit.Check(t, out.code != 0 && strings.Count(out.stderr, "\n") == 2, "repair of an unknown session: exit %d, %q", out.code, out.stderr)
	w.d.MustStop(t)
	w.look("hint: ", 3, "verify", "--repair", c.session)
}

// TestDeadLetterIsNotEqual: a refused line is counted, with the command that sends it again.
func TestDeadLetterIsNotEqual(t *testing.T) {
	w, c, path := aloneShipped(t, 2120, 5)
	var repaired atomic.Bool
	w.gate.set(onPost(func(r *http.Request) *verdict {
		return kit.If(!repaired.Load() && bytes.Contains(plainBody(t, r), []byte("POISON")), &verdict{status: 422, body: `{"error":{"code":"poison","message":"no"}}`}, nil)
	}))
	w.d.Pause() // so that all lines come in one batch
	w.add(path, c.even(3, 900))
	w.add(path, []byte(`{"type":"user","message":"POISON","cwd":"`+w.cwd()+"\"}\n"))
	w.add(path, c.even(3, 900))
	w.d.Resume()
	w.sync()
	w.unequal("1 entry refused by the server (dead letters)", "`ccship outbox retry --all`")
	repaired.Store(true)
	w.gate.set(nil)
	w.look("", 0, "outbox", "retry", "--all")
	w.syncVerified()
	w.same(c.session, path)
	w.dead(0)
}

// TestDeepTwoEpochs: what another state of this machine sent is compared with the disk, too.
func TestDeepTwoEpochs(t *testing.T) {
	w, c, path := aloneShipped(t, 2130, 40)
	w.alter("UPDATE epochs SET rank = 2")
	w.alter("UPDATE generations SET epoch = 2")
	w.alter("UPDATE lines SET epoch = 2")
	w.alter(fmt.Sprintf("INSERT INTO epochs SELECT owner, stream, 1, 'older', x'%x', first_seen FROM epochs",
		sha256.Sum256([]byte("older"))))
	w.alter("INSERT INTO generations SELECT owner, stream, 1, generation, rewound_to, 30, 0, eof_newline, bytes, 30, first_seen FROM generations")
	w.alter("INSERT INTO lines SELECT owner, stream, 1, generation, line, received, kind, raw FROM lines WHERE line < 30")
	deep := func() outcome { return w.ccship("verify", "--deep") }
	if out := deep(); out.code != 0 || !strings.Contains(out.stdout, "1 generation of earlier states") {
		t.Errorf("verify --deep: exit %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	w.alter("UPDATE lines SET raw = replace(raw, 'user', 'uses') WHERE line = 7 AND epoch = 1")
	out := deep()
	kit.Check(t, out.code == 1 && strings.Contains(out.stdout, "line 8: other bytes on the server") && strings.Contains(out.stdout, "older"),
		"verify --deep of a damaged epoch: exit %d\n%s%s", out.code, out.stdout, out.stderr)
	w.verified()
	w.same(c.session, path)
}

// TestReplacedArrive: lines that were queued when their transcript rejoined, and are on no disk any more, are sent in a
// generation of their own, and nobody has to ask for it: nothing is overwritten, and the disk stays in front.
func TestReplacedArrive(t *testing.T) {
	r := newRolledBack(t, 2140)
	session := r.talks[0].session
	path := r.paths[session]
	back := r.keep(r.state(), r.projects())
	r.write(0, 40) // the future that the state will not know
	r.sync()
	r.gate.set(unreachable)
	back()
	r.write(0, 30)
	rewound := r.read(path)
	r.until("they are queued", func(s status) bool { return s.Outbox.Entries >= 30 })
	r.rewind(0, 20, 10)
	r.until("the rewind is queued", func(s status) bool { return s.Outbox.Entries >= 40 })
	r.gate.set(nil)
	r.sync()
	r.proven(session, path)
	r.same(session, path)
	r.dead(0)
	last := rewound[bytes.LastIndexByte(rewound[:len(rewound)-1], '\n')+1:]
	found := false
	for _, g := range r.exact.digest(session).Generations {
		status, body := r.exact.get("/api/sessions/" + session + "/entries" + generation(int(g.Generation)) + "&limit=1000")
		found = found || status == http.StatusOK && bytes.Contains(body, bytes.TrimSpace(last)[1:])
	}
	kit.Check(t, found, "the lines that were rewound are in no generation")
}
