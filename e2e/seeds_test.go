//go:build unix

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// seed is a row of what ccship promises to those who used its forerunners: a command, a call of the control socket, or
// a hook, and what is seen then.
type seed struct {
	row  string
	do   string // `ccship` words; METHOD /path of the socket, with a body; or hook EVENT with its input
	want string // a regular expression
}

// SESSION and DOCUMENT in a row stand for those of the test.
func seedRows() []seed {
	return []seed{
		{"2: a census of what is there, from the daemon", "list", `on this disk: 1 session and 0 agents of 1 project`},
		{"2: the census for programs", "list --json", `"census":\{"projects":1,"sessions":1`},
		{"2: the census of the socket", "GET /v1/sessions", `"census":\{"projects":1.*"session":"SESSION"`},
		{"2: a census in status", "status", `1 transcript of 1 session`},
		{"2: what records say is shown", "show SESSION", `(?s)model +claude.*count the apples`},
		{"3: link", "link add DOCUMENT --session SESSION", `spec.md`},
		{"3: list", "link list --session SESSION --json", `"path":"spec.md"`},
		{"3: paths that leave the working dir are refused", "link add /etc/hostname --session SESSION", `hint: `},
		{"3: the socket lists documents", "GET /v1/documents?session=SESSION", `"path":"spec.md"`},
		{"3: session-init names the linked documents", `hook session-start {"session_id":"SESSION","cwd":"CWD"}`,
			`(?s)SessionStart.*spec.md`},
		{"3: MCP", "mcp", `"(un)?link_document"`},
		{"3: unlink", "link rm DOCUMENT --session SESSION", ``},
		{"3: nothing is linked", "link list --session SESSION --json", `"documents":\[\]`},
		{"4: messages", "messages SESSION", `(?s)count the apples.*there are three`},
		{"4: messages by limit and offset", "messages SESSION --limit 1 --offset 1 --json", `"messages":\[\{[^{]*\}\]`},
		{"4: messages of the socket", "GET /v1/messages?session=SESSION&limit=1", `"messages":\[`},
		{"4: clear", "messages SESSION --clear", ``},
		{"5: a budget can be set", "checkpoint budget --session SESSION --set 1000", ``},
		{"5: the budget of the socket", "GET /v1/budget?session=SESSION", `1000`},
		{"5: create", "checkpoint create SESSION --summary apples --json", `"id":"cp-[0-9a-f]+".*"trigger_type":"manual"`},
		{"5: list", "checkpoint list --session SESSION --json",
			`"id":"cp-.*"tokens_used".*"token_budget".*"context_hash".*"summary":"apples".*"active_files".*"created_at"`},
		{"5: latest", "checkpoint show latest --session SESSION", `apples`},
		{"5: checkpoints of the socket", "GET /v1/checkpoints?session=SESSION", `"trigger_type":"manual"`},
		{"1: trouble shows in doctor", "doctor", `daemon|ok`},
		{"1: everything is proven", "verify", `^equal: `},
		{"1: a project can be kept here", "exclude /nowhere/private", ``},
		{"1: what is kept here is listed", "exclude", `/nowhere/private`},
		{"1: trusted projects", "config trusted_projects", ``},
		{"1: forget", "forget SESSION --yes --json", `"session":"SESSION"`},
	}
}

// mcpHello begins to talk to an MCP server.
const mcpHello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
	`"clientInfo":{"name":"x","version":"1"}}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

// TestSeeds walks those rows through the built programs.
func TestSeeds(t *testing.T) {
	w, c, path := aloneTalk(t, sessionA)
	w.add(path, c.prompt("count the apples"))
	w.add(path, c.says(1000, "there are three"))
	document := filepath.Join(w.cwd(), "spec.md")
	must(t, os.WriteFile(document, []byte("# Spec\n"), 0o600))
	w.sync()
	w.derived("three", sessionA)
	names := strings.NewReplacer("SESSION", sessionA, "DOCUMENT", document, "CWD", w.cwd())
	for _, s := range seedRows() {
		got, want := "", regexp.MustCompile(names.Replace(s.want))
		// A hook, and what lists, wait for a slow daemon for a moment only, and go without it then: they are asked again.
		kit.Check(t, kit.Within(2*time.Minute, func() bool { got = w.seed(names.Replace(s.do)); return want.MatchString(got) }),
			"%s: %s\n%s\nis not %s", s.row, s.do, got, want)
	}
}

// seed does what a row says, and returns what is seen.
func (w *world) seed(do string) string {
	w.t.Helper()
	verb, rest, _ := strings.Cut(do, " ")
	switch verb {
	case "GET":
		return w.socketGet(rest)
	case "hook":
		event, input, _ := strings.Cut(rest, " ")
		return w.piped(kit.Program(w.t, "ccship-hook"), input, event)
	case "mcp":
		return w.mcp(`"method":"tools/list"`, `"tools"`+":[")
	}
	out := w.ccship(strings.Fields(do)...)
	return out.stdout + out.stderr
}

// mcp starts the MCP server, makes a call, and returns what it answers up to the line with end.
func (w *world) mcp(call, end string) string {
	w.t.Helper()
	kit.Program(w.t, "ccship-mcp") // it lies beside ccship
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := w.command(ctx, kit.Program(w.t, "ccship"), "mcp")
	input := kit.Try(cmd.StdinPipe()).Must(w.t)
	output := kit.Try(cmd.StdoutPipe()).Must(w.t)
	must(w.t, cmd.Start())
	kit.Try(io.WriteString(input, mcpHello+`{"jsonrpc":"2.0","id":2,`+call+"}\n")).Must(w.t)
	var said strings.Builder
	for lines := bufio.NewReader(output); !strings.Contains(said.String(), end); {
		line, err := lines.ReadString('\n')
		said.WriteString(line)
		if err != nil {
			break
		}
	}
	must(w.t, input.Close())
	_ = cmd.Wait() // how it ends says nothing
	return said.String()
}

// piped runs a program with an input, and returns what it prints.
func (w *world) piped(program, input string, args ...string) string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := w.command(ctx, program, args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	_, failed := errors.AsType[*exec.ExitError](err)
	kit.Require(w.t, err == nil || failed, "%v", err)
	return string(out)
}

// socketGet asks the control socket.
func (w *world) socketGet(path string) string {
	w.t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", w.socket())
		}}}
	answer := kit.Try(client.Get("http://ccship" + path)).Must(w.t)
	defer answer.Body.Close()
	text := kit.Try(io.ReadAll(answer.Body)).Must(w.t)
	return string(text)
}

// TestSeedProject: a project's own settings of the forerunner hold: what it keeps back stays here; its server and key
// are followed once the project is trusted, in the base protocol; what its old cache names is not sent again.
func TestSeedProject(t *testing.T) {
	w := alonePlain(t)
	theirs := newPlainServer(t, "their-key")
	gate := newGate(t, theirs)
	trusted, private := filepath.Join(w.dir, "work", "trusted"), filepath.Join(w.dir, "work", "private")
	for dir, config := range map[string]string{
		trusted: `{"server_url":"` + gate.srv.URL + `","conversation_tracking":{"max_entries_per_request":2}}`,
		private: `{"conversation_tracking":{"enabled":false}}`,
	} {
		must(t, os.MkdirAll(filepath.Join(dir, ".codetracker", "cache"), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, ".codetracker", "config.json"), []byte(config), 0o600))
	}
	must(t, os.WriteFile(filepath.Join(trusted, ".codetracker", "credentials.json"),
		[]byte(`{"api_key":"their-key","current_project_hash":"their-hash"}`), 0o600))
	must(t, os.WriteFile(filepath.Join(trusted, ".codetracker", "cache", "last_snapshot.json"),
		[]byte(`{"files":{},"transcript":{"session_id":"`+sessionA+`","last_sent_line":1,"last_sent_at":"2026-01-01T00:00:00Z"}}`), 0o600))
	w.configure("trusted_projects = [\"" + trusted + "\"]\n")
	a, b := newTalk(sessionA, trusted), newTalk(sessionB, private)
	for range 5 {
		w.add(w.path("-work-trusted", sessionA+".jsonl"), a.prompt("theirs"))
		w.add(w.path("-work-private", sessionB+".jsonl"), b.prompt("mine"))
	}
	w.startAndSync()
	theirs.mu.Lock()
	got, hash := theirs.sessions[sessionA], theirs.projects[sessionA]
	theirs.mu.Unlock()
	if _, again := got[0]; again || len(got) != 5-firstUnsent(got) || hash != "their-hash" || firstUnsent(got) < 1 {
		t.Errorf("the trusted project's server has %d lines from %d, of %q", len(got), firstUnsent(got), hash)
	}
	n := len(w.plain.lines(sessionA)) + len(w.plain.lines(sessionB))
	kit.Check(t, n == 0, "the user's own server has %d lines that are not for it", n)
}

// firstUnsent is the first line that a server got.
func firstUnsent(lines map[int64][]byte) int {
	first := 1 << 30
	for i := range lines {
		first = min(first, int(i))
	}
	return first
}

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
