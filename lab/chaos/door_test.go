//go:build unix

package chaos

import (
	"bytes"
	"context"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/ccship/ccship/e2e/kit"
)

// door stands between the daemon and the server: a TCP proxy that makes connections bad, and behind it an HTTP proxy
// that makes answers bad. Without a fault both pass everything on unchanged.
type door struct {
	t     testing.TB
	gate  *httptest.Server
	tcp   *toxiproxy.Proxy
	mu    sync.Mutex
	fault fault // guarded by mu
	asked int   // requests that a fault answered; guarded by mu
}

// fault answers a request in the server's place, or passes it on. Several requests are answered at once.
type fault func(w http.ResponseWriter, r *http.Request, pass func())

func newDoor(t testing.TB, s *server) *door {
	t.Helper()
	d := &door{t: t}
	d.gate = httptest.NewServer(d.handler(s))
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	d.tcp = toxiproxy.NewProxy(api, "door", "127.0.0.1:0", strings.TrimPrefix(d.gate.URL, "http://"))
	kit.Must(t, d.tcp.Start())
	t.Cleanup(func() {
		d.tcp.Stop()
		d.gate.CloseClientConnections()
		d.gate.Close()
	})
	return d
}

func (d *door) url() string { return "http://" + d.tcp.Listen }

func (d *door) handler(s *server) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", s.address },
		Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 8},
		ErrorLog:  log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			cut(w) // as if nothing stood between: a server that is gone ends its connections
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		f := d.fault
		if f != nil {
			d.asked++
		}
		d.mu.Unlock()
		if f == nil {
			proxy.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the daemon is gone
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		f(w, r, func() {
			again := r.Clone(r.Context())
			again.Body = io.NopCloser(bytes.NewReader(body))
			proxy.ServeHTTP(w, again)
		})
	})
}

// cut ends a connection instead of answering.
func cut(w http.ResponseWriter) {
	if h, ok := w.(http.Hijacker); ok {
		if conn, _, err := h.Hijack(); err == nil {
			_ = conn.Close()
		}
	}
}

// set changes what happens to requests; nil: they are passed on.
func (d *door) set(f fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault, d.asked = f, 0
}

func (d *door) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.asked
}

// toxic makes connections bad, those that are open included.
func (d *door) toxic(kind, direction, attributes string) {
	d.t.Helper()
	text := `{"name":"` + kind + direction + `","type":"` + kind + `","stream":"` + direction + `","attributes":{` + attributes + `}}`
	kit.Try(d.tcp.Toxics.AddToxicJson(strings.NewReader(text))).Must(d.t)
}

func (d *door) clean() { d.tcp.Toxics.ResetToxics(context.Background()) }

// respond answers with a status and a body that no server of ours sends.
func respond(status int, kind, body string, header ...string) fault {
	return func(w http.ResponseWriter, _ *http.Request, _ func()) {
		w.Header().Set("Content-Type", kind)
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// answered passes a request on into nothing: the server has it, the daemon does not know.
func answered(d *door) fault {
	return func(w http.ResponseWriter, _ *http.Request, pass func()) {
		pass()
		cut(w)
	}
}

// late passes requests on in another order than they came.
func late(rng *rand.Rand, limit time.Duration) fault {
	var mu sync.Mutex
	return func(_ http.ResponseWriter, _ *http.Request, pass func()) {
		mu.Lock()
		wait := time.Duration(rng.Int64N(int64(limit)))
		mu.Unlock()
		kit.Pass(wait)
		pass()
	}
}
