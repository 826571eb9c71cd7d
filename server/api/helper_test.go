package api_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/api"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/store/sqlite"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// rig is a server on loopback with a database of its own.
type rig struct {
	t     testing.TB
	path  string // of the database
	store *sqlite.Store
	http  *httptest.Server
	key   string
	parts sync.WaitGroup
	end   context.CancelFunc // of parts
}

func newRig(t testing.TB, set ...func(*api.Server)) *rig {
	t.Helper()
	r := &rig{t: t, path: filepath.Join(t.TempDir(), "server.db")}
	r.start(set...)
	var hash [32]byte
	r.key, hash = auth.NewKey()
	u := kit.Try(r.store.AddUser(t.Context(), "owner", server.Owner, server.By{At: time.Now()})).Must(t)
	kit.Must(t, r.store.AddKey(t.Context(), server.Key{User: u, Name: "test", Hash: hash, Created: time.Now()}))
	t.Cleanup(func() { r.stop() })
	return r
}

func (r *rig) start(set ...func(*api.Server)) {
	r.t.Helper()
	r.store = kit.Try(sqlite.Open(r.t.Context(), r.path, sqlstore.Opening{})).Must(r.t)
	log := discard()
	hub := server.NewHub(r.store)
	s := api.New(r.store, auth.New(r.store, log), hub)
	for _, f := range set {
		f(s)
	}
	r.http = httptest.NewServer(s.Handler())
	ctx, end := context.WithCancel(context.Background())
	derive := derive.Deriver{Store: r.store, Log: log}
	r.parts.Go(func() { r.check(hub.Run(ctx)) })
	r.parts.Go(func() { r.check(derive.Run(ctx)) })
	r.end = end
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// waitDerived returns once everything is derived of what is stored.
func (r *rig) waitDerived() {
	r.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		n := kit.Try(r.store.Lag(r.t.Context())).Must(r.t)
		if n == 0 {
			return
		}
	}
}

// check is for other goroutines of a test.
func (r *rig) check(err error) {
	kit.Should(r.t, err)
}

func (r *rig) stop() {
	r.end()
	r.http.Close()
	r.parts.Wait()
	kit.Should(r.t, r.store.Close())
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (r *rig) do(method, path string, header map[string]string, body io.Reader) answer {
	r.t.Helper()
	req := kit.Try(http.NewRequestWithContext(r.t.Context(), method, r.http.URL+path, body)).Must(r.t)
	req.Header.Set("X-API-Key", r.key)
	for k, v := range header {
		req.Header.Set(k, v)
	}
	res := kit.Try(r.http.Client().Do(req)).Must(r.t)
	defer res.Body.Close()
	b := kit.Try(io.ReadAll(res.Body)).Must(r.t)
	if _, timed := r.t.(*testing.B); timed {
		return answer{res.StatusCode, res.Header, b}
	}
	checkContract(r.t, req, res.StatusCode, res.Header.Get("Content-Type"), b)
	return answer{res.StatusCode, res.Header, b}
}

func (r *rig) get(path string) answer {
	r.t.Helper()
	return r.do("GET", path, nil, nil)
}

// post sends a request body that must be taken.
func (r *rig) post(body string) {
	r.t.Helper()
	a := r.do("POST", "/api/conversations", nil, bytes.NewReader([]byte(body)))
	kit.Require(r.t, a.status == http.StatusOK, "post %.200s: %d %s", body, a.status, a.body)
}

// try sends a request body from any goroutine.
func (r *rig) try(body string) (status int, err error) {
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.http.URL+"/api/conversations", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("X-API-Key", r.key)
	res, err := r.http.Client().Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

// raw is the file that a session's ?query answers.
func (r *rig) raw(session, query string) string {
	r.t.Helper()
	a := r.get("/api/sessions/" + url.PathEscape(session) + "/raw" + query)
	kit.Require(r.t, a.status == http.StatusOK, "raw %s%s: %d %s", session, query, a.status, a.body)
	return string(a.body)
}

// getJSON decodes a 200 answer.
func (r *rig) getJSON(path string, to any) {
	r.t.Helper()
	a := r.get(path)
	kit.Require(r.t, a.status == http.StatusOK, "get %s: %d %s", path, a.status, a.body)
	err := json.Unmarshal(a.body, to)
	kit.Require(r.t, err == nil, "get %s: %v in %s", path, err, a.body)
}

// digest as a client decodes it.
type digest struct {
	SessionID   string `json:"session_id"`
	Machine     string
	Epoch       string
	Generations []struct {
		Generation, Lines, Missing, Bytes int64
		RewoundTo                         int64 `json:"rewound_to"`
		EndLine                           int64 `json:"end_line"`
		SHA256                            string
		EOFNewline                        bool `json:"eof_newline"`
		Oversize                          []struct {
			Line, Offset, Length int64
			SHA256               string
		}
	}
	LineHashes []*string `json:"line_hashes"`
}

func (r *rig) digest(session, query string) digest {
	r.t.Helper()
	var d digest
	r.getJSON("/api/sessions/"+url.PathEscape(session)+"/digest"+query, &d)
	return d
}

// piece is one extension request in short: lines are object members, numbered from first.
type piece struct {
	machine, epoch string
	gen, rewound   int64
	first          int64
	lines          []string // each an object as in the file
	end            int64    // to.line; 0: behind the last line
	noNewline      bool
}

// body is the request on the wire. Offsets are made up: ten bytes a line, one less without the last newline.
func (p piece) body(session string) string {
	entries := ""
	for i, l := range p.lines {
		if i > 0 {
			entries += ","
		}
		comma := ","
		if l == "{}" {
			comma = ""
		}
		entries += fmt.Sprintf(`{"line_index":%d%s%s`, p.first+int64(i), comma, l[1:])
	}
	end := max(p.end, p.first+int64(len(p.lines)))
	offset := end * 10
	if p.noNewline {
		offset--
	}
	if p.machine == "" {
		p.machine, p.epoch = "m1", "e1"
	}
	return fmt.Sprintf(`{"project_hash":"ph","session_id":%q,"entries":[%s],"ccship":{"v":1,"machine":%q,"host":"h",`+
		`"epoch":%q,"path":"p/s.jsonl","cwd":"/w","project":"w","parent_session_id":null,"generation":%d,"rewound_to":%d,`+
		`"from":{"offset":%d,"line":%d},"to":{"offset":%d,"line":%d},"eof_newline":%v,"edges":[]}}`,
		session, entries, p.machine, p.epoch, p.gen, p.rewound, p.first*10, p.first, offset, end, !p.noNewline)
}

// db opens the database directly, while the server runs.
func (r *rig) db() *sql.DB {
	r.t.Helper()
	db := kit.Try(sql.Open("sqlite", r.path+"?_busy_timeout=5000")).Must(r.t)
	r.t.Cleanup(func() { db.Close() })
	return db
}

// count counts a table's rows.
func (r *rig) count(table string) (n int) {
	r.t.Helper()
	kit.Must(r.t, r.db().QueryRow(`SELECT count(*) FROM `+table).Scan(&n))
	return n
}
