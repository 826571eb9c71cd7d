package proof_test

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/api"
	"github.com/ccship/ccship/server/auth"

	"github.com/ccship/ccship/server/store/sqlite"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// place is where a server shows a transcript.
type reconcilePlace struct{ machine, session string }

// memory is the lines that a database has acknowledged, by the bytes of the line.
type memory map[reconcilePlace]map[string]bool

func (m memory) clone() memory {
	c := memory{}
	for at, lines := range m {
		c[at] = map[string]bool{}
		for l := range lines {
			c[at][l] = true
		}
	}
	return c
}

// database is a database file, and what it has acknowledged.
type database struct {
	path  string
	acked memory
}

// modelServer is the real server in this process. Its database can be exchanged for another one.
type modelServer struct {
	dir  string
	key  string
	http *httptest.Server

	mu       sync.RWMutex // held for writing while the database is exchanged
	handler  http.Handler
	store    *sqlite.Store
	end      func()
	now      database
	kept     []database // snapshots
	older    bool       // one of them was in the database's place
	asked    sync.Mutex
	requests int // guarded by asked, like the following
	writes   int
	cut      map[string]bool // machines that do not reach the server, by User-Agent
	lose     map[string]int  // machines whose next answers are lost: the server stores and nobody hears of it
	unasked  chan struct{}   // unless nil, who asks for the ledger is refused, and rings
	late     *heldWrites     // unless nil, writes of a session wait
	allowed  *int            // unless nil, so many writes are taken, and then none
	digested func()          // unless nil, it is called once before the next answer with digests
}

// template is an empty database with a key, made once: migrating costs more than a history.
var template = sync.OnceValues(func() (data []byte, key string) {
	dir, err := os.MkdirTemp("", "ccship-model")
	must(err)
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "server.db")
	st, err := sqlite.Open(context.Background(), path, sqlstore.Opening{})
	must(err)
	key, hash := auth.NewKey()
	u, err := st.AddUser(context.Background(), "owner", server.Owner, server.By{At: time.Now()})
	must(err)
	must(st.AddKey(context.Background(), server.Key{User: u, Name: "test", Hash: hash, Created: time.Now()}))
	must(st.Close())
	data, err = os.ReadFile(path)
	must(err)
	return data, key
})

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func newModelServer(dir string) *modelServer {
	data, key := template()
	s := &modelServer{dir: dir, key: key, cut: map[string]bool{}, lose: map[string]int{}}
	s.now = database{path: filepath.Join(dir, "server.db"), acked: memory{}}
	must(os.WriteFile(s.now.path, data, 0o600))
	s.open()
	s.http = httptest.NewServer(s)
	return s
}

// recorder notes what a store has acknowledged.
type reconcileRecorder struct {
	server.Store
	mu    sync.Mutex
	acked memory
}

func (r *reconcileRecorder) Put(ctx context.Context, b *server.Batch) error {
	err := r.Store.Put(ctx, b)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at := reconcilePlace{b.Head.Machine, b.Head.SessionID}
	if r.acked[at] == nil {
		r.acked[at] = map[string]bool{}
	}
	for _, l := range b.Lines {
		r.acked[at][string(l.Raw)] = true
	}
	return nil
}

func (s *modelServer) open() {
	st, err := sqlite.Open(context.Background(), s.now.path, sqlstore.Opening{})
	must(err)
	ctx, cancel := context.WithCancel(context.Background())
	changes := server.NewHub(st)
	var wg sync.WaitGroup
	wg.Go(func() { must(changes.Run(ctx)) })
	s.store, s.end = st, func() { cancel(); wg.Wait(); must(st.Close()) }
	s.handler = api.New(&reconcileRecorder{Store: st, acked: s.now.acked}, auth.New(st, quiet), changes).Handler()
}

func (s *modelServer) close() {
	s.http.Close()
	s.end()
}

// ServeHTTP passes requests on, unless the network is in the way.
func (s *modelServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	who := r.UserAgent()
	s.asked.Lock()
	s.requests++
	if r.Method == http.MethodPost && r.URL.Path == "/api/conversations" {
		s.writes++
		if late := s.late; late != nil {
			s.asked.Unlock()
			late.wait(r)
			s.asked.Lock()
		}
	}
	cut, lost := s.cut[who], s.lose[who] > 0
	if lost && !cut {
		s.lose[who]--
	}
	unasked, full, digested := s.unasked, false, s.digested
	if r.URL.Path == "/api/conversations" && s.allowed != nil && !cut {
		full = *s.allowed == 0
		*s.allowed = max(0, *s.allowed-1)
	}
	if strings.HasSuffix(r.URL.Path, "/digests") {
		s.digested = nil
	} else {
		digested = nil
	}
	s.asked.Unlock()
	if cut {
		panic(http.ErrAbortHandler)
	}
	if unasked != nil && r.URL.Path == "/api/ledger" {
		select {
		case unasked <- struct{}{}:
		default:
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if lost {
		s.handler.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}
	if full {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if digested == nil {
		s.handler.ServeHTTP(w, r)
		return
	}
	answer := httptest.NewRecorder()
	s.handler.ServeHTTP(answer, r)
	s.mu.RUnlock()
	digested() // it may exchange the database
	s.mu.RLock()
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// allow has the server take so many writes and then none; -1: all.
func (s *modelServer) allow(n int) {
	s.asked.Lock()
	defer s.asked.Unlock()
	if s.allowed = &n; n < 0 {
		s.allowed = nil
	}
}

// whenDigested has fn called before the next answer with digests.
func (s *modelServer) whenDigested(fn func()) { kit.Locked(&s.asked, func() { s.digested = fn }) }

// counts are the requests so far.
func (s *modelServer) counts() (requests, writes int) {
	s.asked.Lock()
	defer s.asked.Unlock()
	return s.requests, s.writes
}

func (s *modelServer) setCut(who string, cut bool) { kit.Locked(&s.asked, func() { s.cut[who] = cut }) }

func (s *modelServer) loseAnswers(who string, n int) {
	kit.Locked(&s.asked, func() { s.lose[who] = n })
}

// refuseLedger refuses requests for the ledger, or no longer. The channel rings at a request.
func (s *modelServer) refuseLedger(refuse bool) <-chan struct{} {
	s.asked.Lock()
	defer s.asked.Unlock()
	if s.unasked = nil; refuse {
		s.unasked = make(chan struct{}, 1)
	}
	return s.unasked
}

// heldWrites are writes of a session that wait until released is closed. The first of them rings.
type heldWrites struct {
	session         string
	rings, released chan struct{}
}

// holdWrites has all writes of a session wait from now on, also those that are sent again because no answer came.
func (s *modelServer) holdWrites(session string) (rings <-chan struct{}, release func()) {
	s.asked.Lock()
	defer s.asked.Unlock()
	late := &heldWrites{session, make(chan struct{}, 1), make(chan struct{})}
	s.late = late
	return late.rings, sync.OnceFunc(func() { close(late.released) })
}

// wait returns when a request may go on. One that its sender gave up is never stored.
func (h *heldWrites) wait(r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if r.Header.Get("Content-Encoding") == "zstd" {
		decoder, err := zstd.NewReader(nil)
		must(err)
		defer decoder.Close()
		body, err = decoder.DecodeAll(body, nil)
		must(err)
	}
	if !bytes.Contains(body, []byte(`"session_id":"`+h.session+`"`)) {
		return
	}
	select {
	case h.rings <- struct{}{}:
	default:
	}
	select {
	case <-h.released:
	case <-r.Context().Done():
		panic(http.ErrAbortHandler)
	}
}

// exchanged runs fn while the database is closed.
func (s *modelServer) exchanged(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
	fn()
	s.open()
}

// snapshot keeps a copy of the database.
func (s *modelServer) snapshot() {
	s.exchanged(func() {
		kept := database{filepath.Join(s.dir, "kept"+itoa(len(s.kept))), s.now.acked.clone()}
		copyFile(kept.path, s.now.path)
		s.kept = append(s.kept, kept)
	})
}

// restore puts a copy back, as the server's own command does it or by copying the file.
func (s *modelServer) restore(n int, renew bool) {
	s.older = true
	s.exchanged(func() {
		for _, suffix := range []string{"-wal", "-shm"} {
			_ = os.Remove(s.now.path + suffix)
		}
		if renew {
			backup, err := os.Open(s.kept[n].path)
			must(err)
			defer backup.Close()
			must(sqlite.Restore(context.Background(), s.now.path, backup, true, ""))
		} else {
			copyFile(s.now.path, s.kept[n].path)
		}
		s.now.acked = s.kept[n].acked.clone()
	})
}

// swap exchanges the database for another one that is kept: two databases behind one address.
func (s *modelServer) swap(n int) {
	s.older = true
	s.exchanged(func() { s.now, s.kept[n] = s.kept[n], s.now })
}

func copyFile(to, from string) {
	data, err := os.ReadFile(from)
	must(err)
	must(os.WriteFile(to, data, 0o600))
}

// reader asks the server directly.
func (s *modelServer) reader() *remote.Client {
	base, err := url.Parse(s.http.URL)
	must(err)
	return &remote.Client{Base: base, Key: func() (string, error) { return s.key, nil },
		HTTP: s.http.Client(), Agent: "model"}
}

// get is the body of an answer of the API; nil unless the status is 200.
func (s *modelServer) get(path string, q url.Values) []byte {
	status, body := s.answer(path, q)
	if status != http.StatusOK {
		return nil
	}
	return body
}

// answer is the status and the body of an answer of the API.
func (s *modelServer) answer(path string, q url.Values) (status int, body []byte) {
	r := httptest.NewRequest(http.MethodGet, path+"?"+q.Encode(), nil)
	r.Header.Set("X-API-Key", s.key)
	w := httptest.NewRecorder()
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.handler.ServeHTTP(w, r)
	return w.Code, bytes.Clone(w.Body.Bytes())
}
