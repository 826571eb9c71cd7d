package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/e2e/kit"
)

// drops answers which rewrites took lines out of a session.
func (s *memServer) drops(w http.ResponseWriter, session string) {
	list := []remote.Drop{}
	numbers := slices.Sorted(maps.Keys(s.streams[session]))
	for i := 1; i < len(numbers) && s.lagging == 0; i++ {
		from := s.streams[session][numbers[i]].start
		before, _ := s.view(session, numbers[i-1])
		now, _ := s.view(session, numbers[i])
		there := map[string]bool{}
		for _, line := range now[min(from, int64(len(now))):] {
			there[string(line)] = true
		}
		lost := slices.DeleteFunc(before[from:], func(line []byte) bool { return there[string(line)] })
		if len(lost) > 0 {
			list = append(list, remote.Drop{
				Session: remote.Session{SessionID: session, Machine: s.machine}, Epoch: s.epoch,
				Generation: int64(numbers[i]), Lines: int64(len(lost)),
			})
		}
	}
	json.NewEncoder(w).Encode(map[string]any{"drops": list, "lagging": s.lagging > 0})
	s.lagging = max(0, s.lagging-1)
}

// attachmentServer is the part of a memServer that keeps blobs. The memServer's lock guards it.
type attachmentServer struct {
	accept  string // Ccship-Accept
	partial map[string][]byte
	blobs   map[string]map[string]string // session → name → content
	puts    int
	stuck   func() bool // asked before a PUT: breaks the connection
}

func (s *attachmentServer) announce(w http.ResponseWriter) {
	if s.accept != "" {
		w.Header().Set("Ccship-Accept", s.accept)
	}
}

func (s *attachmentServer) serves(r *http.Request) bool {
	return s.accept != "" && (strings.HasPrefix(r.URL.Path, "/api/blobs/") || strings.HasSuffix(r.URL.Path, "/blobs"))
}

func (s *attachmentServer) serve(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/blobs") {
		s.list(w, r)
		return
	}
	body := body(r)
	hash, step, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/blobs/"), "/")
	if r.Method == http.MethodGet {
		step = "GET"
	}
	if s.partial == nil {
		s.partial, s.blobs = map[string][]byte{}, map[string]map[string]string{}
	}
	switch have := s.partial[hash]; step {
	case "GET":
		if content, ok := s.whole(hash); ok {
			io.WriteString(w, content)
		} else {
			http.NotFound(w, r)
		}
	case "start":
		fmt.Fprintf(w, `{"offset":%d,"complete":false}`, len(have))
	case "":
		if s.stuck != nil && s.stuck() {
			panic(http.ErrAbortHandler)
		}
		s.puts++
		if r.URL.Query().Get("offset") == strconv.Itoa(len(have)) {
			s.partial[hash] = append(have, body...)
		} else {
			w.WriteHeader(http.StatusConflict)
		}
		fmt.Fprintf(w, `{"offset":%d}`, len(s.partial[hash]))
	case "end":
		if sum := sha256.Sum256(have); hex.EncodeToString(sum[:]) != hash {
			delete(s.partial, hash)
			w.WriteHeader(http.StatusConflict)
			io.WriteString(w, `{"offset":0}`)
			return
		}
		var head struct {
			Session string `json:"session_id"`
			Name    string `json:"name"`
		}
		json.Unmarshal(body, &head)
		if s.blobs[head.Session] == nil {
			s.blobs[head.Session] = map[string]string{}
		}
		s.blobs[head.Session][head.Name] = string(have)
		io.WriteString(w, `{"success":true,"stored":1}`)
	}
}

// whole is a complete blob with a hash.
func (s *attachmentServer) whole(hash string) (string, bool) {
	for _, blobs := range s.blobs {
		for _, content := range blobs {
			if sum := sha256.Sum256([]byte(content)); hex.EncodeToString(sum[:]) == hash {
				return content, true
			}
		}
	}
	return "", false
}

func (s *attachmentServer) list(w http.ResponseWriter, r *http.Request) {
	session, _ := url.PathUnescape(strings.TrimSuffix(strings.TrimPrefix(r.URL.EscapedPath(), "/api/sessions/"), "/blobs"))
	list := []any{}
	for name, content := range s.blobs[session] {
		sum := sha256.Sum256([]byte(content))
		list = append(list, map[string]any{"sha256": hex.EncodeToString(sum[:]), "name": name, "size": len(content)})
	}
	json.NewEncoder(w).Encode(list)
}

// blob is what the server has of a file next to a transcript.
func (s *memServer) blob(session, name string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	content, ok := s.attachments.blobs[session][name]
	return content, ok
}

func (w *world) droppedLines() []control.Advice {
	w.t.Helper()
	return slices.DeleteFunc(w.status().Advice, func(n control.Advice) bool { return n.Kind != "dropped_lines" })
}

// TestRewritesAreShown tells a rewrite that took lines out, with their number, also after a restart; not one that brought
// the same lines again.
func TestRewritesAreShown(t *testing.T) {
	w := newWorld(t)
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 20))
	w.startWith("-p/"+sessionB+".jsonl", records("/home/kim/shop", 0, 20))
	w.server.lagging = 2
	w.rewrite("-p/"+sessionB+".jsonl", record("/home/kim/shop", 99)+records("/home/kim/shop", 0, 20))          // all of them again
	w.rewrite("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5)+records("/home/kim/shop", 12, 15)+"\n") // 12 fewer
	w.sync()
	w.until("the rewrite is told", func() bool { return len(w.droppedLines()) > 0 })
	for _, when := range []string{"at once", "after a restart"} {
		got := w.droppedLines()
		kit.Check(t, len(got) == 1 && strings.Contains(got[0].Text, "took 12 lines out of session "+sessionA[:8]+" (shop)") &&
			strings.HasPrefix(got[0].Hint, "ccship restore "+sessionA+" --generation 0 "),
			"%s: %+v", when, got)
		w.restart()
	}
	w.must(w.forget(sessionA))
	got := w.droppedLines()
	kit.Check(t, len(got) == 0, "of a forgotten session: %+v", got)
}
