//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// usageReport is what the tests read of `usage --json`.
type usageReport struct {
	Source string
	Rows   []map[string]any
	Total  map[string]any
}

func (w *world) usage(args ...string) (r usageReport) {
	w.t.Helper()
	out := w.look("", 0, append([]string{"usage", "--json"}, args...)...)
	must(w.t, json.Unmarshal([]byte(out.stdout), &r))
	return r
}

// answerLine is an answer with its tokens, as Claude Code writes it.
func answerLine(session, cwd, message string, output int, at time.Time) []byte {
	return fmt.Appendf(nil, `{"parentUuid":null,"isSidechain":false,"type":"assistant","requestId":"r%[3]s","cwd":%[2]q,"sessionId":%[1]q,`+
		`"version":"2.1.200","uuid":"%[1]s-%[3]s-%[4]d","timestamp":%[5]q,"message":{"id":"msg_%[3]s","type":"message","role":"assistant",`+
		`"model":"claude-sonnet-4-5","content":[],"usage":{"input_tokens":3,"output_tokens":%[4]d,"cache_read_input_tokens":7,`+
		`"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20}}}}`+"\n",
		session, cwd, message, output, at.UTC().Format("2006-01-02T15:04:05.000Z"))
}

// TestUsageOfServerAndDisk: both sums are the same, in every column, with forks and agents.
func TestUsageOfServerAndDisk(t *testing.T) {
	w := aloneWorld(t)
	w.env = append(w.env, "TZ=Europe/Berlin")
	w.start()
	first := time.Date(2026, 3, 28, 23, 30, 0, 0, time.UTC) // days on both sides of a change of clocks
	sessions := []string{newConversation(501, w.cwd()).session, newConversation(502, w.cwd()).session}
	for i := range 40 {
		at := first.Add(time.Duration(i) * 2 * time.Hour)
		line := answerLine(sessions[0], w.cwd(), fmt.Sprint(i), 10+i, at)
		w.add(w.path("-work-shop", sessions[0]+".jsonl"), append(answerLine(sessions[0], w.cwd(), fmt.Sprint(i), 1, at), line...))
		if i < 20 { // a fork
			w.add(w.path("-work-shop", sessions[1]+".jsonl"), bytes.ReplaceAll(line, []byte(sessions[0]), []byte(sessions[1])))
		}
	}
	long := bytes.ReplaceAll(answerLine(sessions[0], w.cwd(), "long", 5, first), []byte(`"input_tokens":3`), []byte(`"input_tokens":250000`))
	w.add(w.path("-work-shop", sessions[0]+".jsonl"), long) // its model has another price for such
	agent := answerLine(sessions[1], w.cwd(), "agent", 1000, first)
	w.addAndSync(w.path("-work-shop", sessions[1], "subagents", "agent-a1.jsonl"), bytes.Replace(agent, []byte(`"isSidechain":false`), []byte(`"isSidechain":true`), 1))
	eventually(t, "the server has counted everything", time.Minute, func() bool {
		return fmt.Sprint(w.usage().Total["answers"]) == "42"
	})
	for _, by := range []string{"day", "project", "model", "machine", "day,model", "session,model"} {
		theirs, ours := w.usage("--by", by), w.usage("--by", by, "--offline")
		kit.Require(t, theirs.Source == "server" && ours.Source == "disk", "sources %s and %s", theirs.Source, ours.Source)
		if by == "session,model" { // whose a fork's answers are is known by their order of arrival only
			theirs.Rows, ours.Rows = nil, nil
		}
		for _, r := range append(append(theirs.Rows, ours.Rows...), theirs.Total, ours.Total) {
			delete(r, "host") // the daemon may give the machine a name of its own
			if cost, ok := r["cost_usd"].(float64); ok {
				r["cost_usd"] = fmt.Sprintf("%.4f", cost) // the server rounds
			}
		}
		a, b := fmt.Sprint(theirs.Rows, theirs.Total), fmt.Sprint(ours.Rows, ours.Total)
		kit.Check(t, a == b, "by %s:\n%s on the server\n%s on disk", by, a, b)
	}
}

// TestResumeOnAnotherMachine: a session goes from one machine to another, grows there, and comes back.
func TestResumeOnAnotherMachine(t *testing.T) {
	there := aloneWorld(t)
	there.start()
	c := newConversation(503, there.cwd())
	session := c.session
	main := there.path("-work-shop", session+".jsonl")
	there.add(main, c.mixed(40))
	there.add(there.path("-work-shop", session, "subagents", "agent-a1.jsonl"), c.even(5, 300))
	there.add(there.path("-work-shop", session, "tool-results", "t1.txt"), []byte("a large result"))
	there.sync()
	eventually(t, "the attachment is on the server", time.Minute, func() bool {
		code, body := there.exact.get("/api/sessions/" + session + "/blobs")
		return code == 200 && bytes.Contains(body, []byte("t1.txt"))
	})

	here := &world{home: newHome(t), exact: there.exact}
	here.url = there.url
	here.writeKey(there.exact.key)
	must(t, os.MkdirAll(here.cwd(), 0o700))
	here.start()
	out := here.resume(session[:8])
	want := "cd " + here.cwd() + " && claude --resume " + session + "\n"
	kit.Require(t, out.stdout == want, "printed %q, want %q\n%s", out.stdout, want, out.stderr)
	found, err := filepath.Glob(filepath.Join(here.projects(), "*", session+".jsonl"))
	kit.Require(t, err == nil && len(found) == 1, "%v, %v", found, err)
	brought := here.read(found[0])
	moved := bytes.ReplaceAll(there.read(main), jsonCwd(there.cwd()), jsonCwd(here.cwd()))
	kit.Check(t, bytes.Equal(brought, moved), "%s", firstDifference(brought, moved))
	beside := strings.TrimSuffix(found[0], ".jsonl")
	kit.Check(t, string(here.read(filepath.Join(beside, "tool-results", "t1.txt"))) == "a large result" && len(here.read(filepath.Join(beside, "subagents", "agent-a1.jsonl"))) != 0,
		"agents and attachments are not here")

	// It goes on here, and comes back.
	more := newConversation(504, here.cwd()).even(3, 400)
	here.add(found[0], more)
	here.sync()
	age(t, main)
	back := there.ccship("resume", session)
	kit.Require(t, back.code == 0 && strings.Contains(back.stdout, "claude --resume "+session),
		"back: exit %d\n%s%s", back.code, back.stdout, back.stderr)
	there.sync()
	there.verified()
	here.verified()
}

// jsonCwd is the member of a record for a working directory.
func jsonCwd(cwd string) []byte {
	text, _ := json.Marshal(cwd)
	return append([]byte(`"cwd":`), text...)
}

// resume runs `ccship resume --here` in the working directory.
func (w *world) resume(session string) outcome {
	w.t.Helper()
	cmd := w.command(context.Background(), kit.Program(w.t, "ccship"), "resume", session, "--here")
	cmd.Dir = w.cwd()
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run() // the exit code tells
	return outcome{code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

// takenPort is the address of a server at which, after a while, another program listens.
type takenPort struct {
	*httptest.Server
	mu       sync.Mutex
	handler  http.Handler
	keys     int      // requests of the impostor's that showed a key
	bodies   int      // bytes that the impostor was sent
	impostor []string // its requests
}

func newTakenPort(t *testing.T, first http.Handler) *takenPort {
	p := &takenPort{handler: first}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		h := p.handler
		p.mu.Unlock()
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

// give has another program listen: the connections of the one before end.
func (p *takenPort) give(h http.Handler) {
	kit.Locked(&p.mu, func() { p.handler = h })
	p.CloseClientConnections()
}

// noting is an impostor that takes everything, and notes what it is shown.
func (p *takenPort) noting(answer http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		p.impostor = append(p.impostor, r.Method+" "+r.URL.Path)
		p.bodies += len(body)
		if r.Header.Get("X-API-Key") != "" {
			p.keys++
		}
		p.mu.Unlock()
		answer(w, r)
	})
}

// TestImpostor: a program that listens at the server's address after it, another user's program or the end of another
// tunnel, gets neither the key nor a line, and status says so. When the server is back, everything goes on.
func TestImpostor(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"says yes to everything": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Ccship-Protocol", "1")
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"success":true,"entries_stored":1000,"store":"x","proof":"y","link_requests":[]}`)
		},
		"is a plain server": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/api/conversations" {
				http.NotFound(w, r)
				return
			}
			_, _ = io.WriteString(w, `{"success":true,"entries_stored":1}`)
		},
		"repeats what it is asked": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"store":"","proof":"`+r.URL.Query().Get("proof")+`"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := aloneHome(t)
			w := &world{home: h, exact: newShipServer(h)}
			h.writeKey(w.exact.key)
			front := newTakenPort(t, w.exact.handler())
			h.url = front.URL
			c := newConversation(97, h.cwd())
			path := h.path("-work-shop", c.session+".jsonl")
			h.add(path, c.even(20, 2000))
			w.startAndSync()
			front.give(front.noting(answer))
			h.add(path, c.even(20, 2000))
			told := func(s status) bool {
				return len(s.Servers) > 0 && strings.Contains(s.Servers[0].Detail, "does not prove")
			}
			h.until("status says that the server does not prove itself", told)
			w.d.MustStop(t)
			w.start() // from the state, too
			h.until("status says it after a restart", told)
			for _, args := range [][]string{{"verify", "--timeout", "10s"}, {"sync"}, {"list"}, {"search", "x"}, {"doctor"}} {
				_ = h.ccship(args...)
			}
			front.mu.Lock()
			kit.Check(t, front.keys <= 0 && front.bodies <= 0 && len(front.impostor) != 0,
				"the impostor was shown %d keys and %d bytes in %d requests: %.10q", front.keys, front.bodies, len(front.impostor), front.impostor)
			front.mu.Unlock()
			front.give(w.exact.handler())
			w.syncProven(c.session, path)
		})
	}
}
