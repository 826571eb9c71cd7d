package outbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/klauspost/compress/zstd"
)

// seen is one POST as the server got it.
type seen struct {
	number   int             // 1 for the first
	gone     <-chan struct{} // closed when the client gave up
	header   http.Header
	encoding string
	body     []byte // decoded
	session  string
	lines    []int64
	entries  []json.RawMessage
	ccship   map[string]any // nil: bare
}

// has says whether one of its entries holds text.
func (s *seen) has(text string) bool {
	return slices.ContainsFunc(s.entries, func(e json.RawMessage) bool { return bytes.Contains(e, []byte(text)) })
}

// canned is an answer other than success.
type canned struct {
	status int
	header map[string]string
	body   string
	store  bool // take the entries all the same
	cut    bool // no answer: the connection breaks
}

// server takes conversations, unless answer says otherwise, and checks what it gets: never two requests of a stream
// at once, lines of a request ascending, the length announced.
type server struct {
	t        testing.TB
	announce bool
	codings  string // Accept-Encoding of the answers, when it announces
	key      string
	broken   *canned          // answer to a body that cannot be decoded; nil: that fails the test
	accept   string           // Ccship-Accept of the answers, when it announces
	hold     func(*seen)      // called before the answer is decided; it may block
	beside   http.HandlerFunc // what comes to other addresses than that of conversations; nil: that fails the test

	mu     sync.Mutex // guards what follows
	answer func(*seen) *canned
	posts  []*seen
	probes int
	health int // status of the answer to a greeting; 0: 200
	lines  map[string]map[int64]string
	busy   map[string]bool
	order  map[string][]int64 // lines of a session as they came first
}

func newServer(t testing.TB) *server {
	return &server{
		t: t, announce: true, codings: "zstd, gzip", key: "ccs_secret",
		lines: map[string]map[int64]string{}, busy: map[string]bool{}, order: map[string][]int64{},
	}
}

// ail has greetings answered with a status; 0: as by a server that is well.
func (s *server) ail(status int) { kit.Locked(&s.mu, func() { s.health = status }) }

// set changes the answer; nil: take everything.
func (s *server) set(answer func(*seen) *canned) { kit.Locked(&s.mu, func() { s.answer = answer }) }

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		s.mu.Lock()
		s.probes++
		status := s.health
		s.mu.Unlock()
		if r.URL.Path != "/base/healthz" || r.Header.Get("X-API-Key") != "" {
			s.t.Errorf("probe of %s with key %q", r.URL.Path, r.Header.Get("X-API-Key"))
		}
		s.introduce(w)
		if status != 0 {
			w.WriteHeader(status)
		}
		return
	}
	if s.beside != nil && !strings.HasSuffix(r.URL.Path, "/api/conversations") {
		s.introduce(w)
		s.beside(w, r)
		return
	}
	q, ok := s.read(r)
	if !ok {
		if s.broken != nil {
			s.introduce(w)
			w.WriteHeader(s.broken.status)
		}
		return
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.busy, q.session)
	}()
	if s.hold != nil {
		s.hold(q)
	}
	s.reply(w, q, s.decide(q))
}

// accepts changes what it announces next to lines.
func (s *server) accepts(kinds string) { kit.Locked(&s.mu, func() { s.accept = kinds }) }

// introduce says what the server speaks.
func (s *server) introduce(w http.ResponseWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.announce {
		w.Header().Set("Ccship-Protocol", "1")
		w.Header().Set("Accept-Encoding", s.codings)
		if s.accept != "" {
			w.Header().Set("Ccship-Accept", s.accept)
		}
	}
}

func (s *server) reply(w http.ResponseWriter, q *seen, c *canned) {
	s.introduce(w)
	if c == nil {
		fmt.Fprintf(w, `{"success":true,"entries_stored":%d}`, len(q.entries))
		return
	}
	if c.cut {
		panic(http.ErrAbortHandler)
	}
	for k, v := range c.header {
		w.Header()[k] = []string{v}
	}
	w.WriteHeader(c.status)
	_, _ = io.WriteString(w, c.body)
}

// decide asks answer, and stores.
func (s *server) decide(q *seen) *canned {
	s.mu.Lock()
	answer := s.answer
	s.posts = append(s.posts, q)
	q.number = len(s.posts)
	kit.Check(s.t, !s.busy[q.session], "two requests of %s at once", q.session)
	s.busy[q.session] = true
	s.mu.Unlock()
	var c *canned
	if answer != nil {
		c = answer(q)
	}
	if c != nil && !c.store {
		return c
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines[q.session] == nil {
		s.lines[q.session] = map[int64]string{}
	}
	for i, n := range q.lines {
		if _, there := s.lines[q.session][n]; !there {
			s.order[q.session] = append(s.order[q.session], n)
		}
		s.lines[q.session][n] = string(q.entries[i])
	}
	return c
}

func (s *server) read(r *http.Request) (*seen, bool) {
	q := &seen{header: r.Header, gone: r.Context().Done(), encoding: r.Header.Get("Content-Encoding")}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, false // the client went away
	}
	kit.Equal(s.t, "bytes with Content-Length", int64(len(raw)), r.ContentLength)
	if r.URL.Path != "/base/api/conversations" || r.Header.Get("Content-Type") != "application/json" {
		s.t.Errorf("POST to %s of %q", r.URL.Path, r.Header.Get("Content-Type"))
	}
	if q.body, err = decode(q.encoding, raw); err != nil && s.broken != nil {
		return nil, false
	} else if err != nil {
		s.t.Errorf("%s body: %v", q.encoding, err)
		return nil, false
	}
	var doc struct {
		Session string            `json:"session_id"`
		Entries []json.RawMessage `json:"entries"`
		Ccship  map[string]any    `json:"ccship"`
	}
	if err := json.Unmarshal(q.body, &doc); err != nil {
		s.t.Errorf("body: %v\n%.300s", err, q.body)
		return nil, false
	}
	q.session, q.entries, q.ccship = doc.Session, doc.Entries, doc.Ccship
	for _, e := range doc.Entries {
		n, ok := lineIndex(e)
		kit.Check(s.t, ok && (len(q.lines) <= 0 || n > q.lines[len(q.lines)-1]), "entry %.60s out of order", e)
		q.lines = append(q.lines, n)
	}
	return q, true
}

func decode(encoding string, raw []byte) ([]byte, error) {
	switch encoding {
	case "zstd":
		d, err := zstd.NewReader(bytes.NewReader(raw), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer d.Close()
		return io.ReadAll(d)
	}
	return raw, nil
}

// count returns how many POSTs there were.
func (s *server) count() int { return kit.Under(&s.mu, func() int { return len(s.posts) }) }

func (s *server) last() *seen {
	return kit.Under(&s.mu, func() *seen { return s.posts[len(s.posts)-1] })
}

// holds checks that a session has exactly these lines, and got them in ascending order.
func (s *server) holds(session string, want ...int64) {
	s.t.Helper()
	kit.Equal(s.t, session+" has lines", kit.Under(&s.mu, func() []int64 { return slices.Clone(s.order[session]) }), want)
}

// numbers is from, from+1, … to-1, without those in not.
func numbers(from, to int64, not ...int64) (out []int64) {
	for i := from; i < to; i++ {
		if !slices.Contains(not, i) {
			out = append(out, i)
		}
	}
	return out
}

// probed returns how often it was asked what it speaks.
func (s *server) probed() int { return kit.Under(&s.mu, func() int { return s.probes }) }

// all returns the POSTs so far.
func (s *server) all() []*seen {
	return kit.Under(&s.mu, func() []*seen { return slices.Clone(s.posts) })
}

// stored returns what a session has.
func (s *server) stored(session string) map[int64]string {
	return kit.Under(&s.mu, func() map[int64]string { return maps.Clone(s.lines[session]) })
}
