//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"path/filepath"

	"github.com/ccship/ccship/e2e/kit"
)

// shipServer is a running ccship-server with a database and a key of its own.
type shipServer struct {
	home *home
	proc *kit.Process
	url  *url.URL
	key  string
	at   string // where it keeps everything; "": in a database file of its own

	version string   // of its program; "": none
	flags   []string // further ones of serve
}

func newShipServer(h *home) *shipServer {
	h.t.Helper()
	return newShipServerAt(h, "")
}

// newShipServerAt is a server with another store.
func newShipServerAt(h *home, at string) *shipServer {
	h.t.Helper()
	s := &shipServer{home: h, at: at}
	out := h.runProgram(kit.Program(h.t, "ccship-server"), "key", "create", "--name", "e2e", "--store", s.store())
	s.key = strings.TrimSpace(out.stdout)
	kit.Require(h.t, out.code == 0 && s.key != "" && !strings.ContainsAny(s.key, " \n"),
		"key create: exit %d, stdout %q, stderr %q", out.code, out.stdout, out.stderr)
	s.start()
	return s
}

func (s *shipServer) database() string { return filepath.Join(s.home.dir, "server", "server.db") }

func (s *shipServer) store() string {
	if s.at != "" {
		return s.at
	}
	return "sqlite:" + s.database()
}

// start runs the server on a free port and waits for it.
func (s *shipServer) start() {
	s.home.t.Helper()
	program := kit.Try(kit.BuildAs("ccship-server", s.version)).Must(s.home.t)
	flags := append([]string{"serve", "--listen", "127.0.0.1:0", "--store", s.store()}, s.flags...)
	s.proc = s.home.launch(program, flags...)
	base := kit.Try(s.proc.Listening()).Must(s.home.t)
	u := kit.Try(url.Parse(base)).Must(s.home.t)
	s.url = u
}

// handler passes requests on to the server, unchanged in both directions.
func (s *shipServer) handler() http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(s.url) },
		Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 8},
		ErrorLog:  log.New(io.Discard, "", 0), // a killed client is no news
	}
	return proxy
}

// get asks the server itself, past the gate.
func (s *shipServer) get(path string) (int, []byte) {
	s.home.t.Helper()
	r := kit.Try(http.NewRequest(http.MethodGet, s.url.String()+path, nil)).Must(s.home.t)
	r.Header.Set("X-API-Key", s.key)
	answer, err := http.DefaultClient.Do(r)
	kit.Require(s.home.t, err == nil, "GET %s: %v", path, err)
	defer answer.Body.Close()
	body := kit.Try(io.ReadAll(answer.Body)).Must(s.home.t)
	return answer.StatusCode, body
}

// raw is a stream's file as the server has it; nil when it has none. query narrows it to a generation or an epoch.
func (s *shipServer) raw(stream, query string) []byte {
	s.home.t.Helper()
	code, body := s.get("/api/sessions/" + url.PathEscape(stream) + "/raw" + query)
	if code != http.StatusOK {
		s.home.t.Logf("raw of %s%s: %d %s", stream, query, code, body)
		return nil
	}
	return body
}

// digest is what the server says of a stream.
type digest struct {
	SessionID   string `json:"session_id"`
	Machine     string `json:"machine"`
	Epoch       string `json:"epoch"`
	Generations []struct {
		Generation int64  `json:"generation"`
		RewoundTo  int64  `json:"rewound_to"`
		Lines      int64  `json:"lines"`
		Bytes      int64  `json:"bytes"`
		SHA256     string `json:"sha256"`
	} `json:"generations"`
}

func (s *shipServer) digest(stream string) digest {
	s.home.t.Helper()
	code, body := s.get("/api/sessions/" + url.PathEscape(stream) + "/digest")
	kit.Require(s.home.t, code == http.StatusOK, "digest of %s: %d %s", stream, code, body)
	var d digest
	must(s.home.t, json.Unmarshal(body, &d))
	return d
}

// generation is the query for one generation's view.
func generation(n int) string { return fmt.Sprintf("?generation=%d", n) }
