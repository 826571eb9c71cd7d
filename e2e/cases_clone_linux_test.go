package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// clone copies a home whose daemon does not run. The programs run in their homes, so both have the same paths, as on
// two machines.
func (r *rolledBack) clone() *rolledBack {
	r.t.Helper()
	h := newHome(r.t)
	h.url, h.env = r.url, r.env
	h.writeKey(r.key)
	for from, to := range map[string]string{r.projects(): h.projects(), r.state(): h.state()} {
		must(r.t, os.RemoveAll(to))
		must(r.t, os.CopyFS(to, os.DirFS(from)))
		must(r.t, os.Chmod(to, 0o700))
	}
	w := &world{home: h, gate: r.gate, exact: r.exact}
	c := &rolledBack{world: w, paths: map[string]string{}}
	for session := range r.paths {
		c.talks = append(c.talks, &conversation{})
		c.paths[session] = h.path("-work-shop", session+".jsonl")
	}
	return c
}

// identity is what the machine is called after it took a name of its own; "" before.
func (r *rolledBack) identity() (name, host string) {
	text, err := os.ReadFile(filepath.Join(r.state(), "machine.json"))
	if err != nil {
		return "", ""
	}
	var id struct{ Name, Host string }
	must(r.t, json.Unmarshal(text, &id))
	return id.Name, id.Host
}

// shownAs demands that the server shows every transcript on this machine's disk under a machine's name.
func (r *rolledBack) shownAs(name string) {
	r.t.Helper()
	for session, path := range r.paths {
		got := r.exact.raw(session, "?machine="+url.QueryEscape(name))
		want := r.read(path)
		kit.Check(r.t, bytes.Equal(got, want), "%s of %s: %s", session, name, firstDifference(got, want))
	}
}

// TestClone: a machine and its copy both go on. Each shows what is on its own disk, one under a name of its own, and
// what both had is not sent again.
func TestClone(t *testing.T) {
	a := newRolledBack(t, 2060)
	a.d.MustStop(t)
	a.env = []string{"CCSHIP_ROOTS=/proc/self/cwd/.claude/projects"}
	must(t, os.RemoveAll(a.state()))
	a.start()
	a.sync()
	session := a.talks[0].session
	name := a.exact.digest(session).Machine
	a.d.MustStop(t)
	b := a.clone()
	a.start()
	b.start()
	a.add(a.paths[session], newConversation(2070, a.cwd()).even(10, 2000))
	a.sync()
	b.add(b.paths[session], newConversation(2071, a.cwd()).even(10, 2000))
	eventually(t, "one of both has a name of its own", 2*time.Minute, func() bool {
		for _, m := range []*rolledBack{a, b} {
			m.add(m.paths[session], newConversation(2072, a.cwd()).even(1, 200))
			m.ccship("sync", "--wait", "--timeout", "60s") // ends early where the daemon starts again under a new name
			if own, _ := m.identity(); own != "" {
				return true
			}
		}
		return false
	})
	for _, m := range []*rolledBack{a, b, a, b} {
		eventually(t, "all is sent", 2*time.Minute, func() bool { return m.ccship("sync", "--wait").code == 0 })
	}
	named := 0
	for _, m := range []*rolledBack{a, b} {
		own, host := m.identity()
		if own == "" {
			own = name
		} else if named++; own == name || !strings.HasSuffix(host, " (2)") {
			t.Errorf("the clone is %q on %q", own, host)
		}
		m.shownAs(own)
		m.verified()
		sent := m.sent()
		kit.Check(t, sent <= 60_000+resendLimit, "%d bytes were sent", sent)
	}
	kit.Check(t, named == 1, "%d of both have a name of their own", named)
}

// secondDatabase starts a server with a copy of the first one's database under another id. It gets the requests that
// toSecond chooses.
func (r *rolledBack) secondDatabase(toSecond func(*http.Request) bool) {
	r.t.Helper()
	r.exact.proc.MustStop(r.t)
	other := &shipServer{home: r.home, key: r.exact.key, at: "sqlite:" + filepath.Join(r.dir, "other", "server.db")}
	must(r.t, os.CopyFS(filepath.Join(r.dir, "other"), os.DirFS(filepath.Dir(r.exact.database()))))
	renewStore(r.t, r) // of the first: the copy keeps the id
	r.exact.start()
	other.start()
	first, second := r.exact.handler(), other.handler()
	r.gate.mu.Lock()
	defer r.gate.mu.Unlock()
	r.gate.backend = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if toSecond(q) {
			second.ServeHTTP(w, q)
			return
		}
		first.ServeHTTP(w, q)
	})
}

// TestVerifyTwoDatabases: a balancer sends what is read to another database than what is written. The other one has all
// of it, or some. Neither may count: verify says so in one line, and ends with 1.
func TestVerifyTwoDatabases(t *testing.T) {
	r := newRolledBack(t, 2090)
	var read, every atomic.Int64
	every.Store(1 << 40)
	r.secondDatabase(func(q *http.Request) bool {
		switch q.URL.Path { // only what verify reads is counted: others ask at any time
		case "/api/conversations", "/api/ledger", "/api/proof", "/api/drops", "/api/link-requests":
			return false
		}
		return read.Add(1)%every.Load() == 0
	})
	r.write(0, 3)
	r.sync()
	for _, n := range []int64{2, 1} { // every second answer, then all of them
		every.Store(n)
		for range 2 { // beginning with either
			x := r.ccship("verify", "--deep")
			if all := x.stdout + x.stderr; x.code != 1 || strings.Count(all, "two databases answer in turn") != 1 ||
				strings.Contains(all, "equal") {
				t.Errorf("every %d: exit %d: %s", n, x.code, all)
			}
			read.Add(1)
		}
	}
	every.Store(1 << 40)
	r.healed(r.sent())
}

// TestTwoDatabases: two databases answer in turn at one address. The daemon stops and says so; when one answers alone it
// goes on, and that one has everything.
func TestTwoDatabases(t *testing.T) {
	r := newRolledBack(t, 2080)
	var asked, alone atomic.Int64
	r.secondDatabase(func(*http.Request) bool { return alone.Load() == 0 && asked.Add(1)%2 == 0 })
	const said = "two databases answer in turn"
	eventually(t, "status says that two databases answer", 5*time.Minute, func() bool {
		r.write(0, 1)
		s := r.status().Servers[0] // of one moment: five answers in a row may be of one database, and then it goes on
		kit.Check(t, !strings.Contains(s.Detail, said) || s.State == "refused",
			"the server is %q although %s", s.State, s.Detail)
		return strings.Contains(s.Detail, said) && strings.Contains(r.ccship("status").stdout, said)
	})
	alone.Store(1)
	before := r.sent()
	r.write(1, 3)
	r.healed(before)
}
