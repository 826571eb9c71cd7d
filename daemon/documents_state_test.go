package daemon

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
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

// TestDocumentsStay keeps documents of an excluded project here, and sends them when it is not excluded any more.
func TestDocumentsStay(t *testing.T) {
	w, s, cwd := newDocumentWorld(t)
	saveFile(t, cwd, "spec.md", "# Spec\n")
	ignore := saveFile(t, cwd, ".ccshipignore", "")
	w.startWith("-p/"+sessionA+".jsonl", records(cwd, 0, 3))
	d := w.link(sessionA, "spec.md")
	kit.Check(t, len(d.Documents) == 1 && strings.Contains(d.Documents[0].Problem, "stays on this machine"),
		"linked: %+v", d)
	kit.Has(t, "Claude is not told", w.init(sessionA, cwd), "  - spec.md")
	saveFile(t, cwd, "spec.md", "# Changed\n")
	w.until("the change is seen", func() bool {
		d, err := w.client.Documents(t.Context(), sessionA)
		return err == nil && d.Documents[0].Version == 2
	})
	w.sync()
	kit.Equal(t, "events left this machine", len(s.told(sessionA)), 0)
	kit.Must(t, os.Remove(ignore))
	w.until("it is sent", func() bool { got, _ := s.content(sessionA, "spec.md"); return got == "# Changed\n" })
	saveFile(t, cwd, ".ccshipignore", "") // nothing is written to the transcript from now on
	saveFile(t, cwd, "spec.md", "# Secret\n")
	w.until("another change is seen", func() bool {
		d, err := w.client.Documents(t.Context(), sessionA)
		return err == nil && d.Documents[0].Version == 3 && strings.Contains(d.Documents[0].Problem, "stays on this machine")
	})
	w.sync()
	kit.Equal(t, "changes", s.changes(sessionA, "spec.md"), "linked 2")
}

// TestDocumentsForgotten forgets a session: its documents go, and cannot be linked again.
func TestDocumentsForgotten(t *testing.T) {
	w, s, cwd := newDocumentWorld(t)
	saveFile(t, cwd, "spec.md", "# Spec\n")
	w.write("-p/"+sessionA+".jsonl", records(cwd, 0, 3))
	w.startWith("-p/"+sessionB+".jsonl", records(cwd, 0, 3))
	w.link(sessionA, "spec.md")
	w.link(sessionB, "spec.md")
	w.init(sessionA, cwd)
	w.must(w.client.Forget(t.Context(), control.ForgetRequest{Session: sessionA}))
	gone := func(when string) {
		t.Helper()
		_, err := w.client.LinkDocument(t.Context(), control.DocumentRequest{Session: sessionA, Path: "spec.md"})
		e := (*control.Error)(nil)
		kit.Check(t, errors.As(err, &e) && e.Code == control.CodeNoSession, "%s: link: %v", when, err)
		_, err = w.client.Documents(t.Context(), sessionA)
		kit.Check(t, err != nil, "%s: it has documents", when)
		d, err := w.client.Documents(t.Context(), sessionB)
		kit.Check(t, err == nil && len(d.Documents) == 1, "%s: another session: %+v %v", when, d, err)
	}
	gone("forgotten")
	w.init(sessionA, cwd)
	told := len(s.told(sessionA))
	saveFile(t, cwd, "spec.md", "# Changed\n")
	w.until("the other session's changes", func() bool { got, _ := s.content(sessionB, "spec.md"); return got == "# Changed\n" })
	w.stop()
	projections := openTestState(t, w)
	db := projections.State
	i, kept, err := projections.Introductions.Get(t.Context(), sessionA)
	kit.Check(t, err == nil && !kept, "how it is introduced is kept: %+v %v", i, err)
	kit.Must(t, db.Close())
	w.start()
	gone("after a restart")
	kit.Equal(t, "events came after it was forgotten", len(s.told(sessionA)), told)
}

// TestDocumentsLater links while the server takes no documents: what is known is sent when it does.
func TestDocumentsLater(t *testing.T) {
	w, s, cwd := newDocumentWorld(t)
	s.accepts = ""
	saveFile(t, cwd, "spec.md", "# Spec\n")
	saveFile(t, cwd, "was.md", "x")
	main := "-p/" + sessionA + ".jsonl"
	w.startWith(main, records(cwd, 0, 3))
	w.link(sessionA, "spec.md")
	w.link(sessionA, "was.md")
	w.unlink(sessionA, "was.md")
	w.sync()
	kit.Equal(t, "events were sent to a server that takes none", len(s.told(sessionA)), 0)
	kit.Locked(&s.mu, func() { s.accepts = "documents, blobs" })
	w.write(main, records(cwd, 3, 4))
	w.until("it is told", func() bool { got, _ := s.content(sessionA, "spec.md"); return got == "# Spec\n" })
}

// TestDocumentInTrouble: of what cannot be read nothing is sent, the list says why, and it goes on later.
func TestDocumentInTrouble(t *testing.T) {
	w, s, cwd := newDocumentWorld(t)
	doc := saveFile(t, cwd, "docs/spec.md", "# Spec\n")
	secret := saveFile(t, t.TempDir(), "secret", "secret")
	w.startWith("-p/"+sessionA+".jsonl", records(cwd, 0, 3))
	w.link(sessionA, "docs/spec.md")
	for _, trouble := range []struct {
		says string
		make func() error
	}{
		{"directory", func() error { return os.Mkdir(doc, 0o700) }},
		{"outside", func() error { return os.Symlink(secret, doc) }},
	} {
		kit.Must(t, errors.Join(os.RemoveAll(doc), trouble.make()))
		w.until("it is said to be a "+trouble.says, func() bool {
			d, err := w.client.Documents(t.Context(), sessionA)
			return err == nil && strings.Contains(d.Documents[0].Problem, trouble.says)
		})
	}
	kit.Must(t, os.Rename(cwd, cwd+"-away"))
	w.until("the folder is said to be away", func() bool {
		d, err := w.client.Documents(t.Context(), sessionA)
		return err == nil && strings.Contains(d.Documents[0].Problem, "does not exist")
	})
	kit.Must(t, errors.Join(os.Rename(cwd+"-away", cwd), os.RemoveAll(doc)))
	saveFile(t, cwd, "docs/spec.md", "# Back\n")
	w.until("it is back", func() bool { got, _ := s.content(sessionA, "docs/spec.md"); return got == "# Back\n" })
	for _, e := range s.told(sessionA) {
		kit.Check(t, e.Content == nil || !strings.Contains(*e.Content, "secret"), "what lies outside was sent: %+v", e)
	}
}

// TestWhateverHappens writes, replaces and deletes documents, links and unlinks them and stops the daemon in any order:
// in the end the server has what is on disk, and versions only rose.
func TestWhateverHappens(t *testing.T) {
	w, s, cwd := newDocumentWorld(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	c := &talk{session: sessionA, cwd: cwd}
	main := "-p/" + sessionA + ".jsonl"
	names := []string{"a.md", "docs/b.md", "c.bin"}
	for _, name := range names {
		saveFile(t, cwd, name, "first "+name)
	}
	w.startWith(main, c.prompt("hello"))
	for _, name := range names {
		w.link(sessionA, name)
	}
	for n := range 60 {
		name := names[random.IntN(len(names))]
		path := filepath.Join(cwd, name)
		text := fmt.Sprintf("%d %s", n, strings.Repeat("x", random.IntN(3)*50_000))
		switch random.IntN(8) {
		case 0, 1:
			saveFile(t, cwd, name, text)
		case 2:
			kit.Must(t, os.Rename(saveFile(t, cwd, name+".tmp", text), path))
		case 3:
			err := os.Remove(path)
			kit.Require(t, err == nil || errors.Is(err, os.ErrNotExist), "%v", err)
		case 4:
			saveFile(t, cwd, name, text)
			w.write(main, c.edits(path))
		case 5:
			w.write(main, w.links(c, name, random.IntN(3) > 0))
		case 6:
			_, err := w.client.UnlinkDocument(t.Context(), control.DocumentRequest{Session: sessionA, Path: name})
			e := (*control.Error)(nil)
			kit.Require(t, err == nil || errors.As(err, &e) && e.Code == control.CodeDocument, "%v", err)
		case 7:
			w.restart()
		}
		if random.IntN(3) == 0 {
			w.sync()
		}
	}
	w.sync()
	for _, name := range names {
		saveFile(t, cwd, name, "last "+name)
		w.link(sessionA, name)
	}
	kit.Must(t, os.Remove(filepath.Join(cwd, names[0])))
	for i, name := range names {
		w.until("the end of "+name, func() bool {
			got, there := s.content(sessionA, name)
			e, _ := s.latest(sessionA, name)
			return i > 0 && there && got == "last "+name || i == 0 && !there && e.Change == "deleted"
		})
		var version int64
		for _, e := range s.told(sessionA) {
			if e.Path != name {
				continue
			}
			kit.Check(t, e.Version > version, "%s: version %d came after %d", name, e.Version, version)
			version = e.Version
		}
	}
}

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
