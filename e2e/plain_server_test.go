//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
)

// plainServer is a server that speaks the base protocol and has never heard of the extension: it upserts entries by
// session_id and line_index. It is strict: a request that the protocol does not allow makes the test fail.
type plainServer struct {
	t   testing.TB
	key string

	mu       sync.Mutex // guards what follows
	sessions map[string]map[int64][]byte
	repeated int               // entries that were there already, with the same bytes
	replaced int               // entries that were there already, with other bytes
	projects map[string]string // session → project_hash
}

func newPlainServer(t testing.TB, key string) *plainServer {
	return &plainServer{t: t, key: key, sessions: map[string]map[int64][]byte{}, projects: map[string]string{}}
}

func (s *plainServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	n, err := s.store(r, body)
	if err != nil {
		s.t.Errorf("not the base protocol: %v", err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"success":true,"entries_stored":%d}`, n)
}

// store checks a request against the protocol and takes its entries.
func (s *plainServer) store(r *http.Request, body []byte) (int, error) {
	if err := s.checkRequest(r); err != nil {
		return 0, err
	}
	var request struct {
		ProjectHash string            `json:"project_hash"`
		SessionID   string            `json:"session_id"`
		Entries     []json.RawMessage `json:"entries"`
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&request); err != nil {
		return 0, fmt.Errorf("body: %w", err)
	}
	switch n := len(request.Entries); {
	case request.SessionID == "" || request.ProjectHash == "":
		return 0, fmt.Errorf("session_id %q, project_hash %q", request.SessionID, request.ProjectHash)
	case n == 0 || n > 100:
		return 0, fmt.Errorf("%d entries in one request", n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.projects[request.SessionID] = request.ProjectHash
	lines := s.sessions[request.SessionID]
	if lines == nil {
		lines = map[int64][]byte{}
		s.sessions[request.SessionID] = lines
	}
	last := int64(-1)
	for _, entry := range request.Entries {
		index, raw, err := splitEntry(entry)
		if err != nil {
			return 0, err
		}
		if index <= last {
			return 0, fmt.Errorf("line_index %d follows %d", index, last)
		}
		last = index
		old, there := lines[index]
		switch {
		case there && bytes.Equal(old, raw):
			s.repeated++
		case there:
			s.replaced++
		}
		lines[index] = raw
	}
	return len(request.Entries), nil
}

func (s *plainServer) checkRequest(r *http.Request) error {
	switch {
	case r.URL.Path != "/api/conversations":
		return fmt.Errorf("path %q", r.URL.Path)
	case r.Header.Get("Content-Type") != "application/json":
		return fmt.Errorf("Content-Type %q", r.Header.Get("Content-Type"))
	case r.Header.Get("Content-Encoding") != "":
		return fmt.Errorf("Content-Encoding %q for a server that announced none", r.Header.Get("Content-Encoding"))
	case r.Header.Get("X-API-Key") != s.key:
		return fmt.Errorf("X-API-Key %q", r.Header.Get("X-API-Key"))
	}
	for name := range r.Header {
		if name != "Content-Type" && name != "X-Api-Key" && name != "Content-Length" {
			return fmt.Errorf("header %s", name)
		}
	}
	return nil
}

// splitEntry undoes what the protocol does to a line: the first member is line_index, the rest is the line's own bytes.
func splitEntry(entry []byte) (int64, []byte, error) {
	rest, ok := bytes.CutPrefix(entry, []byte(`{"line_index":`))
	end := bytes.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if !ok || end <= 0 {
		return 0, nil, fmt.Errorf("entry does not begin with its line_index: %.80q", entry)
	}
	index, err := strconv.ParseInt(string(rest[:end]), 10, 64)
	if err != nil {
		return 0, nil, fmt.Errorf("line_index: %w", err)
	}
	rest = bytes.TrimPrefix(rest[end:], []byte(","))
	return index, append([]byte("{"), rest...), nil
}

// lines returns a session's lines by index; the map is the caller's, the bytes are not.
func (s *plainServer) lines(session string) map[int64][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := map[int64][]byte{}
	for index, raw := range s.sessions[session] {
		lines[index] = raw
	}
	return lines
}

// total counts all entries that are stored.
func (s *plainServer) total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, lines := range s.sessions {
		n += len(lines)
	}
	return n
}

// names lists the sessions.
func (s *plainServer) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name := range s.sessions {
		names = append(names, name)
	}
	return names
}

// repeats returns how many entries came again, with the same and with other bytes.
func (s *plainServer) repeats() (same, other int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.repeated, s.replaced
}
