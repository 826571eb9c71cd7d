//go:build unix

package chaos

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestCopies: machines, databases and servers of which there are two.
func TestCopies(t *testing.T) {
	t.Parallel()
	const group = "identity"
	all := []row{
		{group: group, fault: "a copied machine, and both go on", short: 1, long: 20, room: copiedRoom, do: (*room).copiedMachine},
		{group: group, fault: "two databases answer in turn at one address", short: 1, long: 20, do: (*room).twoDatabases},
	}
	for _, i := range []struct {
		name   string
		answer http.HandlerFunc
	}{
		{"says yes to everything", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Ccship-Protocol", "1")
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"success":true,"entries_stored":1000,"store":"x","proof":"y","link_requests":[]}`)
		}},
		{"is a plain server", func(w http.ResponseWriter, q *http.Request) {
			if q.URL.Path != "/api/conversations" {
				http.NotFound(w, q)
				return
			}
			_, _ = io.WriteString(w, `{"success":true,"entries_stored":1}`)
		}},
		{"repeats what it is asked", func(w http.ResponseWriter, q *http.Request) {
			_, _ = io.WriteString(w, `{"store":"","proof":"`+q.URL.Query().Get("proof")+`"}`)
		}},
	} {
		all = append(all, row{group: group, fault: "another program at the server's address, which " + i.name, long: 20,
			do: func(r *room) { r.impostor(i.answer) }})
	}
	rows(t, all)
}

// impostor listens at the server's address. It is shown neither the key nor a line.
func (r *room) impostor(answer http.HandlerFunc) {
	r.t.Helper()
	var shown, lines, asked atomic.Int64
	r.door.set(func(w http.ResponseWriter, q *http.Request, _ func()) {
		body, _ := io.ReadAll(q.Body) // one that ends early has shown less
		lines.Add(int64(len(body)))
		for _, values := range q.Header {
			if strings.Contains(strings.Join(values, " "), r.s.key) {
				shown.Add(1)
			}
		}
		asked.Add(1)
		answer(w, q)
	})
	r.door.gate.CloseClientConnections() // the server's end with it
	r.write(5)
	kit.Within(verbLimit, func() bool {
		r.write(1)
		return asked.Load() > 1 && strings.Contains(r.ccship("status").text(), "does not prove")
	})
	r.tell()
	for _, verb := range []string{"verify", "sync", "doctor"} {
		r.ccship(verb)
	}
	if r.rng.IntN(2) == 0 {
		r.stop()
		r.start()
	}
	if shown.Load() > 0 || lines.Load() > 0 || asked.Load() == 0 {
		r.out.Wrong++
		r.t.Errorf("the impostor was shown the key %d times, and %d bytes of lines, in %d requests", shown.Load(), lines.Load(), asked.Load())
	}
	r.door.set(nil)
	r.door.gate.CloseClientConnections()
}

// twoDatabases has a copy of the server's database, with an identity of its own, answer every other request.
func (r *room) twoDatabases() {
	r.t.Helper()
	r.settle()
	r.s.p.Kill()
	dir := kit.Try(os.MkdirTemp(r.dir, "second")).Must(r.t)
	defer func() { _ = os.RemoveAll(dir) }()
	from := filepath.Join(r.dir, "server", "server.db")
	to := "sqlite:" + filepath.Join(dir, "server.db")
	r.s.start()
	saved := filepath.Join(dir, "saved.db")
	if b := r.run(verbLimit, r.program("ccship-server"), "backup", "--store", "sqlite:"+from, "--to", saved); b.code != 0 {
		r.t.Fatalf("backup: %s", b.text())
	}
	if b := r.run(verbLimit, r.program("ccship-server"), "restore", "--store", to, "--from", saved); b.code != 0 {
		r.t.Fatalf("restore: %s", b.text())
	}
	second := &server{r: r, store: to, key: r.s.key, address: "127.0.0.1:0"}
	second.start()
	defer second.p.Kill()
	there := &httputil.ReverseProxy{
		Rewrite:      func(q *httputil.ProxyRequest) { q.Out.URL.Scheme, q.Out.URL.Host = "http", second.address },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { cut(w) },
	}
	var asked atomic.Int64
	r.door.set(func(w http.ResponseWriter, q *http.Request, pass func()) {
		if asked.Add(1)%2 == 0 {
			there.ServeHTTP(w, q)
			return
		}
		pass()
	})
	told := kit.Within(verbLimit, func() bool {
		r.write(1)
		return strings.Contains(r.ccship("status").text(), "two databases answer in turn")
	})
	if !told {
		r.t.Errorf("nobody is told that two databases answer: %s", r.ccship("status").text())
	}
	r.tell()
	r.write(3)
	r.door.set(nil)
}

// copiedRoom is a room whose transcripts have the same path as those of its copy: as on two machines.
func copiedRoom(t testing.TB, out *kit.Outcome) *room {
	t.Helper()
	r := emptyRoom(t, out)
	r.env = append(r.env, "CCSHIP_ROOTS=/proc/self/cwd/.claude/projects")
	if _, err := os.Stat("/proc/self/cwd"); err != nil {
		t.Skip("needs /proc")
	}
	r.furnish(6)
	return r
}

// copiedMachine lets a copy of the machine go on along with it. Each has on the server what it has on its disk.
func (r *room) copiedMachine() {
	r.t.Helper()
	r.settle()
	r.known()
	r.stop()
	b := emptyRoom(r.t, r.out)
	b.env, b.s, b.door, b.machine = r.env, r.s, r.door, r.machine
	kit.Must(r.t, os.WriteFile(b.keyFile(), []byte(r.s.key+"\n"), 0o600))
	b.restored(b.projects(), r.projects())
	b.restored(b.state(), r.state())
	for _, c := range r.talks {
		rest := kit.Try(filepath.Rel(r.projects(), c.path)).Must(r.t)
		b.talks = append(b.talks, &talk{session: c.session, path: filepath.Join(b.projects(), rest), rng: b.rng, n: c.n + 1000})
	}
	r.start()
	b.start()
	if !kit.Within(2*verbLimit, func() bool {
		for _, m := range []*room{r, b} {
			m.write(2)
			m.ccship("sync", "--wait", "--timeout", "60s") // ends early where a daemon begins again under another name
		}
		return r.ownName() != b.ownName()
	}) {
		r.t.Error("both have one name")
	}
	b.tell()
	for _, m := range []*room{r, b} {
		if own := m.ownName(); own != "" {
			m.machine = own
		}
	}
	kit.Check(r.t, r.machine != b.machine, "both are called %q", r.machine)
	b.proof()
	b.stop()
}

// known notes by which name the server knows this machine.
func (r *room) known() {
	r.t.Helper()
	if r.machine != "" {
		return
	}
	text := kit.Try(r.s.get(r.talks[0].session, "/digest")).Must(r.t)
	var digest struct{ Machine string }
	kit.Must(r.t, json.Unmarshal(text, &digest))
	r.machine = digest.Machine
}

// ownName is the name that this machine took when it found its copy; "": none.
func (r *room) ownName() string {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.state(), "machine.json"))
	if err != nil {
		return ""
	}
	var id struct{ Name string }
	if json.Unmarshal(text, &id) != nil {
		return ""
	}
	return id.Name
}
