//go:build unix

package claude_test

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// stub is a stand-in for the Messages API, as much of it as Claude Code uses. It answers at once.
type stub struct {
	srv *httptest.Server

	mu      sync.Mutex // guards what follows
	scripts []script
	places  map[string]place // by the tool call a script waits for
	failed  map[string]bool  // scripted errors that were answered once already, by script
	counts  map[kind]int
	strange []string // requests it does not know
	keeps   bool     // set before the first request
	tools   []tool   // with keeps: of the last of them
	kept    []string // with keeps: what the model was shown in each request of a conversation, as JSON
}

func newStub(t testing.TB, scripts ...script) *stub {
	s := &stub{scripts: scripts, places: map[string]place{}, failed: map[string]bool{}, counts: map[kind]int{}}
	s.srv = httptest.NewServer(s)
	t.Cleanup(s.srv.Close)
	return s
}

// seen is how many requests of each kind came in, and those that were not understood.
func (s *stub) seen() (map[kind]int, []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts), append([]string(nil), s.strange...)
}

// request is what the stub reads of a call.
type request struct {
	Model      string    `json:"model"`
	Stream     bool      `json:"stream"`
	MaxTokens  int       `json:"max_tokens"`
	Messages   []message `json:"messages"`
	Tools      []tool    `json:"tools"`
	ToolChoice struct {
		Name string `json:"name"`
	} `json:"tool_choice"`
	OutputFormat struct {
		Schema json.RawMessage `json:"schema"`
	} `json:"output_format"`
	OutputConfig struct {
		Format struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"output_config"`
	size int
}

type tool struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"input_schema"`
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	w.Header().Set("request-id", newID("req_"))
	var req request
	known := r.URL.Path == "/v1/messages" || r.URL.Path == "/v1/messages/count_tokens"
	switch {
	case r.Method == http.MethodHead: // is the network there?
		return
	case r.Method != http.MethodPost || !known:
		s.wonder(r.Method + " " + r.URL.Path)
		refuse(w, http.StatusNotFound, "not_found_error")
		return
	}
	if err := json.Unmarshal(body, &req); err != nil {
		s.wonder(fmt.Sprintf("%s: %v", r.URL.Path, err))
		refuse(w, http.StatusBadRequest, "invalid_request_error")
		return
	}
	req.size = len(body)
	if r.URL.Path == "/v1/messages/count_tokens" {
		s.count(counting)
		reply(w, map[string]int{"input_tokens": len(body) / 4})
		return
	}
	k, a := s.answer(&req)
	s.count(k)
	if s.keeps && k == conversation {
		s.keep(&req)
	}
	if a.status != 0 {
		refuse(w, a.status, "overloaded_error")
		return
	}
	m := s.render(&req, a)
	if !req.Stream {
		reply(w, m)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	m.stream(w)
}

func (s *stub) count(k kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[k]++
}

func (s *stub) keep(req *request) {
	told, _ := json.Marshal(req.Messages) // they came as JSON
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept, s.tools = append(s.kept, string(told)), req.Tools
}

// offered says whether the model could call a tool in the last request of a conversation.
func (s *stub) offered(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.tools, func(t tool) bool { return t.Name == name })
}

// told is what the model was shown in each request of a conversation, from the one with index from on.
func (s *stub) told(from int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.kept[from:])
}

func (s *stub) wonder(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.strange = append(s.strange, what)
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that hangs up is nothing to report
}

func refuse(w http.ResponseWriter, status int, kind string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"type":"error","error":{"type":%q,"message":"said by the stub"}}`, kind)
}

func newID(prefix string) string {
	b := make([]byte, 12)
	_, _ = rand.Read(b) // never fails
	return prefix + hex.EncodeToString(b)
}
