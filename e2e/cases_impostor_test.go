//go:build unix

package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

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
	p.mu.Lock()
	p.handler = h
	p.mu.Unlock()
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
			t.Parallel()
			h := newHome(t)
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
			if front.keys > 0 || front.bodies > 0 || len(front.impostor) == 0 {
				t.Errorf("the impostor was shown %d keys and %d bytes in %d requests: %.10q", front.keys, front.bodies, len(front.impostor), front.impostor)
			}
			front.mu.Unlock()
			front.give(w.exact.handler())
			w.sync()
			w.same(c.session, path)
			w.verified()
		})
	}
}
