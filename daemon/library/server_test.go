package library

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript"
)

const (
	here   = "0a0a0a0a" // this machine
	abroad = "0b0b0b0b"
	one    = "11111111-0000-4000-8000-000000000001"
	two    = "11112222-0000-4000-8000-000000000002"
)

// stored is a session as the server of a test has it.
type stored struct {
	id, machine, path, parent, text string
	copies                          [][2]string // names and machines
	at                              time.Time
	sum                             string      // what it says the sha256 is; "": the truth
	cwd                             string      // "": /nowhere/shop
	user                            string      // "": the key's
	blobs                           [][2]string // names and contents
}

// fakeServer is a server with a few sessions.
type fakeServer struct {
	sessions []*stored
	down     bool
	asked    func(path string) // before each answer; nil: nothing happens
}

func (s *fakeServer) find(id, machine string) *stored {
	for _, x := range s.sessions {
		if x.id == id && (machine == "" || x.machine == machine) {
			return x
		}
	}
	return nil
}

func (x *stored) answer() map[string]any {
	copies := []map[string]string{}
	for _, c := range x.copies {
		copies = append(copies, map[string]string{"session_id": c[0], "machine": c[1]})
	}
	return map[string]any{"copies": copies,
		"session_id": x.id, "user": cmp.Or(x.user, "kim"), "machine": x.machine, "host": "host-" + x.machine, "project": "shop", "cwd": cmp.Or(x.cwd, "/nowhere/shop"), "path": x.path,
		"parent_session_id": x.parent, "epoch": "e", "bytes": len(x.text), "last_active": x.at, "summary": map[string]any{"title": "Title of " + x.id[:4]},
		"generations": []any{map[string]any{"generation": 0, "end_line": strings.Count(x.text, "\n"), "eof_newline": true}},
	}
}

func (s *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if s.asked != nil {
		s.asked(r.URL.Path)
	}
	if s.down {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	parts := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/api/"), "/", 2)
	switch {
	case parts[0] == "groups":
		groups := []any{}
		for _, x := range s.sessions {
			groups = append(groups, x.answer())
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"groups": groups})
	case len(parts) == 1:
		list := []any{}
		since, _ := time.Parse(time.RFC3339Nano, q.Get("since"))
		for _, x := range slices.SortedStableFunc(slices.Values(s.sessions), func(a, b *stored) int { return b.at.Compare(a.at) }) {
			if !x.at.Before(since) && (!q.Has("machine") || q.Get("machine") == x.machine) && strings.Contains(x.id, q.Get("text")) && x.parent == q.Get("parent") {
				list = append(list, x.answer())
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"sessions": list, "next": nil})
	default:
		s.file(w, parts[1], q)
	}
}

func (s *fakeServer) file(w http.ResponseWriter, rest string, q url.Values) {
	for _, x := range s.sessions {
		for _, b := range x.blobs {
			if sum := sha256.Sum256([]byte(b[1])); rest == hex.EncodeToString(sum[:]) {
				_, _ = io.WriteString(w, b[1])
				return
			}
		}
	}
	what := rest[strings.LastIndex(rest, "/")+1:]
	x := s.find(strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(rest, "/raw"), "/digest"), "/blobs"), q.Get("machine"))
	if x == nil || q.Get("user") == remote.Me && x.user != "" || q.Get("user") == "ann" && x.user != "ann" {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":{"code":"not_found","message":"no"}}`)
		return
	}
	switch what {
	case "blobs":
		list := []any{}
		for _, b := range x.blobs {
			sum := sha256.Sum256([]byte(b[1]))
			list = append(list, map[string]any{"name": b[0], "size": len(b[1]), "sha256": hex.EncodeToString(sum[:])})
		}
		_ = json.NewEncoder(w).Encode(list)
	case "raw":
		_, _ = io.WriteString(w, x.text)
	case "digest":
		sum := sha256.Sum256([]byte(x.text))
		lines := strings.Count(x.text, "\n")
		g := map[string]any{"generation": 0, "lines": lines, "end_line": lines, "bytes": len(x.text), "eof_newline": true, "sha256": hex.EncodeToString(sum[:])}
		if x.sum != "" {
			g["sha256"] = x.sum
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"generations": []any{g}})
	default:
		_ = json.NewEncoder(w).Encode(x.answer())
	}
}

// room is a home with a library over it.
type room struct {
	*Library
	t          *testing.T
	fakeServer *fakeServer
}

func newRoom(t *testing.T, sessions ...*stored) *room {
	t.Helper()
	s := &fakeServer{sessions: sessions}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	base := kit.Try(url.Parse(web.URL)).Must(t)
	root := filepath.Join(t.TempDir(), "projects")
	kit.Must(t, os.MkdirAll(root, 0o700))
	server := &remote.Client{Base: base, Key: func() (string, error) { return "", nil }, HTTP: web.Client()}
	return &room{&Library{Roots: []string{root}, Server: server, Machine: here}, t, s}
}

// write puts a file below the projects folder that was last changed some time ago.
func (r *room) write(path, text string, ago time.Duration) string {
	r.t.Helper()
	path = filepath.Join(r.Roots[0], path)
	at := time.Now().Add(-ago)
	kit.WriteFile(r.t, path, text)
	kit.Must(r.t, os.Chtimes(path, at, at))
	return path
}

// files are all names below the projects folder.
func (r *room) files() (names []string) {
	_ = filepath.WalkDir(r.Roots[0], func(path string, e os.DirEntry, _ error) error {
		if !e.IsDir() {
			rel, _ := filepath.Rel(r.Roots[0], path)
			names = append(names, filepath.ToSlash(rel))
		}
		return nil
	})
	return names
}

func prompt(text string) string {
	return fmt.Sprintf(`{"type":"user","cwd":"/home/kim/shop","message":{"role":"user","content":%q},"uuid":"u","timestamp":"2026-11-19T10:00:00Z"}`+"\n", text)
}

// promptAt is a prompt that was written some time ago.
func promptAt(text string, ago time.Duration) string {
	return strings.Replace(prompt(text), "2026-11-19T10:00:00Z", time.Now().Add(-ago).UTC().Format(time.RFC3339Nano), 1)
}

func TestMove(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the expected paths have slashes")
	}
	for _, c := range []struct{ old, now, cwd, want string }{
		{"/home/kim/shop", "/w/shop", "/home/kim/shop", "/w/shop"},
		{"/home/kim/shop", "/w/shop", "/home/kim/shop/api/v2", "/w/shop/api/v2"},
		{"/home/kim/shop/", "/w/shop", "/home/kim/shop", "/w/shop"},
		{"/home/kim/shop", "/w/shop", "/home/kim/shop2", "/home/kim/shop2"},
		{"/home/kim/shop", "/w/shop", "/home/kim", "/home/kim"},
		{"/home/kim/shop", "/w/shop", "/tmp/x", "/tmp/x"},
		{"/home/kim/shop", "/w/shop", "", ""},
		{"", "/w/shop", "/home", "/home"},
		{`C:\src\shop`, "/w/shop", `C:\src\shop`, "/w/shop"},
		{`C:\src\shop`, "/w/shop", `c:\SRC\shop\api\v2`, "/w/shop/api/v2"},
		{`C:\src\shop`, "/w/shop", `C:/src/shop/api`, "/w/shop/api"},
		{`C:\src\shop`, "/w/shop", `C:\src\shopping`, `C:\src\shopping`},
		{`\\nas\src\shop`, "/w/shop", `\\nas\src\shop\api`, "/w/shop/api"},
		{"/r/.claude/worktrees/a", "/w/r", "/r/.claude/worktrees/a/x", "/w/r/x"},
		{"/r/.claude/worktrees/a", "/w/r", "/r/x", "/w/r/x"},
		{"/r/.claude/worktrees/a", "/w/r", "/r/.claude/worktrees/b", "/w/r/.claude/worktrees/b"},
		{"/r/.worktrees/a", "/w/r", "/r/x", "/w/r/x"},
		{"/r", "/w/r", "/r/.claude/worktrees/a/x", "/w/r/.claude/worktrees/a/x"},
	} {
		got := newMove(c.old, c.now).to(c.cwd)
		kit.Check(t, got == c.want, "%s to %s: %s became %s, want %s", c.old, c.now, c.cwd, got, c.want)
	}
}

// TestMoveLine changes working directories only, and no byte next to them.
func TestMoveLine(t *testing.T) {
	m := newMove("/home/kim/shop", "/w")
	for line, want := range map[string]string{
		`{"cwd":"/home/kim/shop/a","message":{"content":"cd /home/kim/shop","cwd":"/home/kim/shop"},"o":"/home/kim/shop"}`: `{"cwd":"/w/a","message":{"content":"cd /home/kim/shop","cwd":"/home/kim/shop"},"o":"/home/kim/shop"}`,
		`{"type":"relocated","relocatedCwd":"/home/kim/shop"}`:                                                             `{"type":"relocated","relocatedCwd":"/w"}`,
		`{"type":"worktree-state","worktreeSession":{"originalCwd":"/home/kim/shop"}}`:                                     `{"type":"worktree-state","worktreeSession":{"originalCwd":"/home/kim/shop"}}`,
		`{"cwd":"/home/kim/shop"`: `{"cwd":"/home/kim/shop"`,
		"":                        "",
	} {
		got := string(m.line([]byte(line)))
		kit.Check(t, got == want, "%s\nbecame %s\nwant   %s", line, got, want)
	}
	a, b := neutral([]byte(`{"cwd":"/a","x":1}`)), neutral([]byte(`{"cwd":"/b/c","x":1}`))
	kit.Check(t, string(a) == string(b), "%s and %s", a, b)
}

func TestFolderName(t *testing.T) {
	for cwd, want := range map[string]string{
		"/home/kim/web_app.v2": "-home-kim-web-app-v2", `C:\src\x`: "C--src-x", "/a/é": "-a--", "/a/😀": "-a---", "/a//b": "-a--b",
		"/" + strings.Repeat("x", 200): "", "/a/e\u0301": "",
	} {
		got, ok := folderName(cwd)
		kit.Check(t, ok == (want != "") && (!ok || got == want), "%q: %q %v, want %q", cwd, got, ok, want)
	}
}

// said is what an invented answer's line says. Empty fields are left out of the line.
type said struct {
	message, request, session, model, at string
	input, output                        int
	side                                 bool
	more                                 string // members of the record
}

func (s said) line() string {
	record := map[string]any{
		"type": "assistant", "isSidechain": s.side, "cwd": "/work/shop", "version": "2.1.200",
		"uuid": fmt.Sprintf("%x", []byte(s.message+s.request+s.session)), "timestamp": "2026-11-20T09:00:00.000Z",
	}
	message := map[string]any{"role": "assistant", "content": []any{}, "model": "claude-opus-5", "usage": map[string]any{
		"input_tokens": s.input, "output_tokens": s.output, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 30,
		"cache_creation": map[string]any{"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20}}}
	for name, text := range map[string]string{"requestId": s.request, "sessionId": s.session, "timestamp": s.at} {
		if text != "" {
			record[name] = text
		}
	}
	for name, text := range map[string]string{"id": s.message, "model": s.model} {
		if text != "" {
			message[name] = text
		}
	}
	record["message"] = message
	text, err := json.Marshal(record)
	if err != nil {
		panic(err)
	}
	if s.more != "" {
		return strings.TrimSuffix(string(text), "}") + "," + s.more + "}"
	}
	return string(text)
}

// put writes transcripts below a new projects folder, by path.
func put(t *testing.T, files map[string]string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "projects")
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		kit.WriteFile(t, path, text)
	}
	return root
}

func usageLines(all ...said) string {
	var b strings.Builder
	for _, s := range all {
		b.WriteString(s.line() + "\n")
	}
	return b.String()
}

// disk sums what is below root, with a project's folder as its hash.
func disk(root string) UsageDisk {
	return UsageDisk{
		Roots: []string{root}, Machine: "m1", Host: "laptop", Prices: transcript.DefaultPrices(),
		Project: func(cwd, folder string) (hash, repository string) {
			if main, found := strings.CutSuffix(cwd, "-beside"); found {
				cwd, repository = main, main
			}
			return cwd + "|" + folder, repository
		},
	}
}

func sum(t *testing.T, root string, by ...string) Report {
	t.Helper()
	return kit.Try(disk(root).Sum(t.Context(), Query{By: by, Zone: time.UTC})).Must(t)
}
