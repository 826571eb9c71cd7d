package daemon

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

// documentEvent is an element of POST /api/documents, as a server reads it.
type documentEvent struct {
	Path      string    `json:"path"`
	Change    string    `json:"change"`
	By        string    `json:"by"`
	AddedAt   time.Time `json:"added_at"`
	At        time.Time `json:"at"`
	Version   int64     `json:"version"`
	Size      int64     `json:"size"`
	SHA256    string    `json:"sha256"`
	Encoding  string    `json:"encoding"`
	Content   *string   `json:"content"`
	Blob      string    `json:"blob"`
	TooLarge  bool      `json:"too_large"`
	Reason    string    `json:"reason"`
	RequestID string    `json:"link_request"`
	Line      *int64    `json:"line"`
}

// documentServer takes documents and blobs in front of a memServer, and keeps every event in the order of its arrival.
type documentServer struct {
	next *memServer

	mu       sync.Mutex
	accepts  string                       // the header Ccship-Accept; "" none
	status   int                          // of answers to documents and blobs, when not 0
	events   map[string][]documentEvent   // by session
	requests []map[string]any             // link requests that wait
	asked    int                          // how often for link requests
	heads    map[string]map[string]string // by session: the strings of ccship in the last request
}

// newDocumentWorld is a world whose server takes documents too, and a working directory for a session.
func newDocumentWorld(t *testing.T) (*world, *documentServer, string) {
	t.Helper()
	w := newWorld(t)
	s := &documentServer{
		next: w.server, accepts: "checkpoints, documents, blobs", events: map[string][]documentEvent{},
		heads: map[string]map[string]string{},
	}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	url := kit.Try(config.NormalizeURL(web.URL)).Must(t)
	w.cfg.ServerURL = url
	cwd := kit.Try(filepath.EvalSymlinks(t.TempDir())).Must(t)
	return w, s, cwd
}

func (s *documentServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.accepts != "" {
		w.Header().Set("Ccship-Accept", s.accepts)
	}
	if len(s.requests) > 0 {
		w.Header().Set("Ccship-Link-Requests", "1")
	}
	mine := r.URL.Path == "/api/documents" || strings.HasPrefix(r.URL.Path, "/api/blobs/") || r.URL.Path == "/api/link-requests"
	if !mine {
		s.mu.Unlock()
		s.next.ServeHTTP(w, r)
		return
	}
	defer s.mu.Unlock()
	w.Header().Set("Ccship-Protocol", "1")
	w.Header().Set("Accept-Encoding", "zstd, gzip")
	switch {
	case s.status != 0:
		w.WriteHeader(s.status)
	case s.accepts == "":
		http.NotFound(w, r)
	case r.URL.Path == "/api/link-requests":
		s.asked++
		json.NewEncoder(w).Encode(map[string]any{"link_requests": s.requests})
	case r.URL.Path == "/api/documents":
		s.documents(w, r)
	default:
		s.next.mu.Lock()
		defer s.next.mu.Unlock()
		s.next.attachments.serve(w, r)
	}
}

func (s *documentServer) documents(w http.ResponseWriter, r *http.Request) {
	var req struct {
		ProjectHash string         `json:"project_hash"`
		SessionID   string         `json:"session_id"`
		Ccship      map[string]any `json:"ccship"`
		Events      []documentEvent
	}
	if err := json.Unmarshal(body(r), &req); err != nil || req.SessionID == "" || len(req.Events) == 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	head := map[string]string{}
	for k, v := range req.Ccship {
		head[k] = fmt.Sprint(v)
	}
	s.heads[req.SessionID] = head
	for _, e := range req.Events {
		known := slices.ContainsFunc(s.events[req.SessionID], func(o documentEvent) bool {
			return o.Path == e.Path && o.Version == e.Version && o.Change == e.Change && o.RequestID == e.RequestID && o.At.Equal(e.At)
		})
		if !known {
			s.events[req.SessionID] = append(s.events[req.SessionID], e)
		}
		s.requests = slices.DeleteFunc(s.requests, func(request map[string]any) bool { return request["id"] == e.RequestID })
	}
	json.NewEncoder(w).Encode(map[string]any{"success": true, "stored": len(req.Events)})
}

// told copies the events of a session.
func (s *documentServer) told(session string) []documentEvent {
	return kit.Under(&s.mu, func() []documentEvent { return slices.Clone(s.events[session]) })
}

// latest is the newest event about a document, by version; ok is false when there is none.
func (s *documentServer) latest(session, path string) (last documentEvent, ok bool) {
	for _, e := range s.told(session) {
		if e.Path == path && (!ok || e.Version >= last.Version) {
			last, ok = e, true
		}
	}
	return last, ok
}

// content is what a session's document is by its newest version; false: it is gone, or was never there.
func (s *documentServer) content(session, path string) (string, bool) {
	e, ok := s.latest(session, path)
	if !ok || e.Change == "deleted" || e.TooLarge {
		return "", false
	}
	if e.Blob != "" {
		s.next.mu.Lock()
		defer s.next.mu.Unlock()
		return s.next.attachments.whole(e.Blob)
	}
	if e.Content == nil {
		return "", false
	}
	if e.Encoding == "base64" {
		b, _ := base64.StdEncoding.DecodeString(*e.Content)
		return string(b), true
	}
	return *e.Content, true
}

// changes are the changes of a document in the order of arrival, each with its version.
func (s *documentServer) changes(session, path string) string {
	var list []string
	for _, e := range s.told(session) {
		if e.Path == path {
			list = append(list, fmt.Sprintf("%s %d", e.Change, e.Version))
		}
	}
	return strings.Join(list, ", ")
}

func (w *world) link(session, path string) control.Documents {
	w.t.Helper()
	d, err := w.client.LinkDocument(w.t.Context(), control.DocumentRequest{Session: session, Path: path})
	kit.Require(w.t, err == nil, "link %s: %v", path, err)
	return d
}

func (w *world) unlink(session, path string) control.Documents {
	w.t.Helper()
	d, err := w.client.UnlinkDocument(w.t.Context(), control.DocumentRequest{Session: session, Path: path})
	kit.Require(w.t, err == nil, "unlink %s: %v", path, err)
	return d
}
