package sink

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Mark begins the word by which a line is recognised in any encoding: Mark, digits, MarkEnd.
const (
	Mark    = "mark~"
	MarkEnd = '~'
)

// Sink is a server on loopback. Paths choose how a body is read: see split.
type Sink struct {
	URL   string
	Lines atomic.Int64 // that were acknowledged
	down  atomic.Bool
	srv   *httptest.Server

	mu    sync.Mutex
	keep  bool
	kept  map[string]int
	marks map[int]time.Time
	since time.Time // when lines came last
	bell  chan struct{}
}

// New starts a sink. The caller closes it.
func New() *Sink {
	s := &Sink{kept: map[string]int{}, marks: map[int]time.Time{}, bell: make(chan struct{}, 1)}
	s.srv = httptest.NewServer(s)
	s.URL = s.srv.URL
	return s
}

// Close ends the server and its connections.
func (s *Sink) Close() {
	s.srv.CloseClientConnections()
	s.srv.Close()
}

// Keep has lines kept whole from now on: for comparing, not for timing.
func (s *Sink) Keep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep = true
}

// Down has every request refused with 503 until it is called with false.
func (s *Sink) Down(down bool) { s.down.Store(down) }

// ServeHTTP acknowledges a request in the words of its protocol.
func (s *Sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if s.down.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	lines := s.take(r.URL.Path, body)
	if r.URL.Path == "/v1/logs" {
		w.Header().Set("Content-Type", "application/x-protobuf")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// A client that is gone asks again.
	_, _ = io.WriteString(w, `{"success":true,"entries_stored":`+strconv.Itoa(lines)+`}`)
}

// take notes what a body holds.
func (s *Sink) take(path string, body []byte) int {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	if s.keep {
		split(path, body, func(line []byte) {
			n++
			s.kept[string(line)]++
		})
	} else {
		n = count(path, body)
	}
	for rest := body; ; {
		at := bytes.Index(rest, []byte(Mark))
		if at < 0 {
			break
		}
		rest = rest[at+len(Mark):]
		end := bytes.IndexByte(rest[:min(12, len(rest))], MarkEnd)
		if number, err := strconv.Atoi(string(rest[:max(end, 0)])); err == nil && s.marks[number].IsZero() {
			s.marks[number] = now
		}
	}
	s.Lines.Add(int64(n))
	s.since = now
	select {
	case s.bell <- struct{}{}:
	default:
	}
	return n
}

// Until waits until cond holds, which it asks whenever something came, and reports whether it did within limit.
func (s *Sink) Until(limit time.Duration, cond func() bool) bool {
	end := time.After(limit)
	for !cond() {
		select {
		case <-s.bell:
		case <-end:
			return cond()
		}
	}
	return true
}

// Marked is when the line of a mark came first; zero: not yet.
func (s *Sink) Marked(n int) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.marks[n]
}

// Quiet is for how long nothing came.
func (s *Sink) Quiet() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.since)
}

// Compare says how many of the lines that were ever in a file never came, how many came again, and how many that came
// were never in it.
func (s *Sink) Compare(ever map[string]bool) (lost, again, wrong int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for line := range ever {
		if s.kept[line] == 0 {
			lost++
		}
	}
	for line, n := range s.kept {
		if again += n - 1; !ever[line] {
			wrong++
		}
	}
	return lost, again, wrong
}
