package screen

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/e2e/kit"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC
	os.Exit(m.Run())
}

// now is when tests look.
var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

const (
	cart  = "11111111-0000-4000-8000-000000000001"
	clock = "22222222-0000-4000-8000-000000000002"
	ship  = "33333333-0000-4000-8000-000000000003"
)

// answers is a server with three sessions. A search for a text that has a gate waits until it is open.
type answers struct {
	mu    sync.Mutex
	gates map[string]chan struct{}
	asked []string
}

func (s *answers) gate(text string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := make(chan struct{})
	if s.gates == nil {
		s.gates = map[string]chan struct{}{}
	}
	s.gates[text] = gate
	return gate
}

func (s *answers) all() []string {
	return kit.Under(&s.mu, func() []string { return append([]string(nil), s.asked...) })
}

func stored(id, title, project, machine, host string, ago time.Duration) map[string]any {
	return map[string]any{"session_id": id, "user": "kim", "machine": machine, "host": host, "project": project,
		"cwd": "/home/kim/" + project, "path": "-home-kim-" + project + "/" + id + ".jsonl", "lines": 4,
		"last_active": now.Add(-ago), "summary": map[string]any{"title": title}}
}

func (s *answers) sessions(project string) (list []map[string]any) {
	for _, x := range []map[string]any{
		stored(cart, "Round the cart's total", "shop", "0b0b0b0b", "tower", time.Hour),
		stored(clock, "The clock is an hour late \x1b]0;gone\x07", "clock", "0a0a0a0a", "lap", 26*time.Hour),
		stored(ship, "장바구니 반올림 고치기", "shop", "0a0a0a0a", "lap", 50*24*time.Hour),
	} {
		if project == "" || x["project"] == project {
			list = append(list, x)
		}
	}
	return list
}

func (s *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	var answer any
	switch {
	case r.URL.Path == "/api/search":
		text, project := split(q.Get("q"))
		s.mu.Lock()
		s.asked = append(s.asked, text)
		gate := s.gates[text]
		s.mu.Unlock()
		if gate != nil {
			select {
			case <-gate:
			case <-r.Context().Done():
				return
			}
		}
		found, notes := s.found(text, project), []string{}
		if len(found) == 0 {
			notes = append(notes, "there is no project "+project)
		}
		answer = map[string]any{"sessions": found, "notes": notes}
	case r.URL.Path == "/api/sessions":
		answer = map[string]any{"sessions": s.sessions(q.Get("project"))}
	case strings.HasSuffix(r.URL.Path, "/entries"):
		answer = map[string]any{"entries": entries()}
	default:
		w.WriteHeader(http.StatusNotFound)
		answer = map[string]any{"error": map[string]string{"code": "not_found", "message": "no"}}
	}
	_ = json.NewEncoder(w).Encode(answer) // the client sees a cut answer
}

// found are sessions of the project, each with a line.
func (s *answers) found(text, project string) (found []map[string]any) {
	for _, x := range s.sessions(project) {
		hit := map[string]any{"session_id": x["session_id"], "line_index": 1, "kind": "answer", "current": true,
			"url": "http://viewer/L/1", "time": x["last_active"], "snippet": []map[string]any{
				{"text": "it says that the "}, {"text": text, "match": true}, {"text": " is wrong\nhere"}}}
		found = append(found, map[string]any{"session": x, "title": x["summary"].(map[string]any)["title"],
			"hits": []map[string]any{hit}})
	}
	return found
}

func line(kind, uuid, parent string, message any) json.RawMessage {
	text, _ := json.Marshal(map[string]any{"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": cart,
		"cwd": "/home/kim/shop", "timestamp": now.Add(-time.Hour), "message": message})
	return text
}

// talk are the records of a conversation.
func talk() []json.RawMessage {
	answer := func(id string, content ...map[string]any) map[string]any {
		return map[string]any{"role": "assistant", "id": id, "model": "m", "content": content}
	}
	return []json.RawMessage{
		line("user", "a", "", map[string]any{"role": "user", "content": "The total is a cent off. Fix it."}),
		line("assistant", "b", "a", answer("1", map[string]any{"type": "text", "text": "## Plan\n\nThe `total` is **rounded** twice:\n\n" +
			"- once for each line of the cart, which is wrong because sums of rounded prices drift away from it\n" +
			"- once at the end\n\n```go\nreturn math.Round(sum)\n```"})),
		line("assistant", "c", "b", answer("1", map[string]any{"type": "tool_use", "id": "t1", "name": "Edit", "input": map[string]any{
			"file_path": "/home/kim/shop/cart.go", "old_string": "a\nround(x)\nb", "new_string": "a\nx\nb"}})),
		line("user", "d", "c", map[string]any{"role": "user", "content": []map[string]any{
			{"type": "tool_result", "tool_use_id": "t1", "content": "The file has been updated."}}}),
	}
}

func entries() (all []map[string]any) {
	for i, record := range talk() {
		all = append(all, map[string]any{"line_index": i, "kind": "object", "record": record})
	}
	return all
}

// desk is one for a server at an address, "" for none, with an empty disk.
func desk(t *testing.T, address string) Desk {
	t.Helper()
	root := filepath.Join(t.TempDir(), ".claude", "projects")
	l := &library.Library{Roots: []string{root}, Machine: "0a0a0a0a"}
	if address != "" {
		base := kit.Try(url.Parse(address)).Must(t)
		l.Server = remote.New(base, address, func() (string, error) { return "", nil }, "test")
		t.Cleanup(l.Server.HTTP.CloseIdleConnections)
	}
	return Desk{Library: l, Folder: "/home/kim/shop", Project: "shop", Now: func() time.Time { return now }}
}

// serve is the address of a server.
func serve(t *testing.T, s http.Handler) string {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server.URL
}

// hand uses a screen that nobody sees.
type hand struct {
	*testing.T
	m    *model
	come chan tea.Msg
}

// sit opens a screen and waits until it shows what ran last.
func sit(t *testing.T, d Desk) *hand {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	open := func(context.Context) (Desk, error) { return d, nil }
	h := &hand{t, newModel(ctx, open, false), make(chan tea.Msg)}
	t.Cleanup(cancel)
	h.run(h.m.Init())
	h.until("what ran last", func() bool { return h.m.asks.shown > 0 && h.quiet() })
	return h
}

// run runs a command; what it says comes later.
func (h *hand) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	go func() {
		msg := cmd()
		select {
		case h.come <- msg:
		case <-h.m.ctx.Done():
		}
	}()
}

func (h *hand) take(msg tea.Msg) {
	if batch, ok := msg.(tea.BatchMsg); ok {
		for _, cmd := range batch {
			h.run(cmd)
		}
		return
	}
	_, cmd := h.m.Update(msg)
	h.run(cmd)
}

// until takes what comes until something is so.
func (h *hand) until(what string, so func() bool) {
	h.Helper()
	limit := time.After(time.Minute)
	for !so() {
		select {
		case msg := <-h.come:
			if _, late := msg.(overdueMsg); !late { // tests say themselves when an answer is late
				h.take(msg)
			}
		case <-limit:
			h.Fatalf("waited too long for %s; the screen is\n%s", what, h.m.View().Content)
		}
	}
}

// quiet reports whether everything that was asked for is here.
func (h *hand) quiet() bool { return len(h.m.asks.flying) == 0 && h.m.reading == "" && !h.m.busy }

func (h *hand) keys(keys ...tea.KeyPressMsg) {
	for _, k := range keys {
		h.take(k)
	}
}

func (h *hand) write(text string) {
	for _, r := range text {
		h.keys(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
}

func (h *hand) writeUntil(text, what string, so func() bool) {
	h.Helper()
	h.write(text)
	h.until(what, so)
}

func special(code rune) tea.KeyPressMsg { return tea.KeyPressMsg{Code: code} }

// onDisk writes a transcript.
func onDisk(t *testing.T, d Desk, session string, records []json.RawMessage) string {
	t.Helper()
	path := filepath.Join(d.Library.Roots[0], "-home-kim-shop", session+".jsonl")
	kit.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	text := ""
	for _, r := range records {
		text += fmt.Sprintf("%s\n", r)
	}
	kit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
