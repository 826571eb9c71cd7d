package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

// received waits for what a handler got: a hook may end before the handler has seen its last request.
func received[T any](t *testing.T, from <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-from:
	case <-time.After(hung):
		t.Error("nothing was asked")
	}
	return got
}

// TestHookAsks: a hook says of the session what a daemon knows to read, and nothing else.
func TestHookAsks(t *testing.T) {
	const input = `{"session_id":"s-1","prompt_id":"p","cwd":"/a b/\"c\"","tool_use_id":"t-1"}`
	for event, want := range map[string]control.PendingRequest{
		"pre-tool-use":       {Session: "s-1", Cwd: `/a b/"c"`, Tool: "t-1", Event: "PreToolUse", Confirm: true},
		"user-prompt-submit": {Session: "s-1", Cwd: `/a b/"c"`, Tool: "t-1", Event: "UserPromptSubmit", Confirm: true},
	} {
		asked := make(chan control.PendingRequest, 1)
		hookTells(t, answering(t, func(w http.ResponseWriter, r *http.Request) {
			var req control.PendingRequest
			d := json.NewDecoder(r.Body)
			d.DisallowUnknownFields()
			if err := d.Decode(&req); err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/pending" {
				t.Errorf("%s %s: %v", r.Method, r.URL, err)
			}
			asked <- req
			quiet(w, r)
		}), strings.NewReader(input), nil, event)
		got := received(t, asked)
		kit.Check(t, got == want, "%s asks %+v, want %+v", event, got, want)
	}
	asked := make(chan string, 1)
	hookTells(t, answering(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.URL.Path + " " + r.URL.Query().Get("session") + " " + r.URL.Query().Get("cwd") + " " + r.URL.Query().Get("confirm")
		quiet(w, r)
	}), strings.NewReader(input), nil, "session-start")
	kit.Equal(t, "session-start asks", <-asked, `GET /v1/init s-1 /a b/"c" true`)
}

// TestHookLargeAnswer: an answer that comes in chunks is read whole, and then confirmed over the same connection.
func TestHookLargeAnswer(t *testing.T) {
	text := strings.Repeat("장바구니 ", 50_000)
	confirmed := make(chan control.PendingRequest, 1)
	got := hookTells(t, answering(t, func(w http.ResponseWriter, r *http.Request) {
		var req control.PendingRequest
		if json.NewDecoder(r.Body).Decode(&req) == nil && req.Receipt != "" {
			confirmed <- req
			return
		}
		body, err := json.Marshal(control.Pending{Text: text, Receipt: "r-1"})
		kit.Check(t, err == nil, "%v", err)
		for len(body) > 0 { // each part is a chunk, and cuts characters
			n := min(len(body), 7001)
			_, _ = w.Write(body[:n])
			_ = http.NewResponseController(w).Flush()
			body = body[n:]
		}
	}), strings.NewReader(newInput), nil, "post-tool-use")
	kit.Check(t, strings.Contains(got, text), "it prints %d bytes of %d", len(got), len(text))
	kit.Equal(t, "it confirms", received(t, confirmed), (control.PendingRequest{Session: "s-1", Receipt: "r-1"}))
}

// TestHookAsksTheNext: a socket whose owner hangs up is passed over, one whose owner answers nonsense is not.
func TestHookAsksTheNext(t *testing.T) {
	for _, c := range []struct{ name, says, want string }{
		{"hangs up", "", noticeText}, {"ends at the request", "", noticeText}, {"no HTTP", "hello\r\n\r\n", ""},
		{"an answer without a size", "HTTP/1.1 200 OK\r\n\r\n{\"text\":\"x\"}", ""},
		{"a size that lies", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{}", ""},
		{"half a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{}", ""},
		{"chunks without sizes", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n{}", ""},
	} {
		first := kit.Socket(t)
		ln := kit.Try(net.Listen("unix", first)).Must(t)
		go func() {
			for {
				conn, err := ln.Accept()
				if err != nil {
					return
				}
				if c.name != "hangs up" {
					_, _ = conn.Read(make([]byte, 4096))
					_, _ = conn.Write([]byte(c.says))
				}
				_ = conn.Close()
			}
		}()
		t.Cleanup(func() { _ = ln.Close() })
		home, runtime := filepath.Dir(kit.Socket(t)), t.TempDir()
		for from, to := range map[string]string{
			first:                 filepath.Join(home, ".local", "state", "ccship", "ccship.sock"),
			answering(t, telling): filepath.Join(home, ".local", "state", "ccship", "up", "ccship.sock"),
		} {
			kit.Must(t, os.MkdirAll(filepath.Dir(to), 0o700))
			if err := os.Symlink(from, to); err != nil {
				t.Skip(err)
			}
		}
		cmd := patient(t, "post-tool-use", "HOME="+home, "XDG_RUNTIME_DIR="+runtime)
		cmd.Stdin = strings.NewReader(newInput)
		out, err := cmd.CombinedOutput()
		kit.Check(t, err == nil && strings.Contains(string(out), c.want) && (c.want != "" || len(out) == 0),
			"%s: it prints %q, %v; want %q", c.name, out, err, c.want)
	}
}

// TestHookEndlessAnswer: of an answer that never ends a hook reads as much as an answer may have, and prints nothing.
func TestHookEndlessAnswer(t *testing.T) {
	const most = 96 << 20
	for _, begin := range []string{"", "HTTP/1.1 200 OK\r\nX: ", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"} {
		socket := kit.Socket(t)
		ln := kit.Try(net.Listen("unix", socket)).Must(t)
		written := make(chan int, 1)
		go func() {
			conn, err := ln.Accept()
			if err != nil {
				written <- 0
				return
			}
			_, _ = conn.Write([]byte(begin))
			part, n := []byte(strings.Repeat("y", 64<<10)), 0
			for err == nil && n < most {
				_, err = conn.Write(part)
				n += len(part)
			}
			_ = conn.Close()
			written <- n
		}()
		got := hookTells(t, socket, strings.NewReader(newInput), nil, "session-start")
		n := received(t, written)
		kit.Check(t, got == "" && n < most/4, "%q: it read %d MB and prints %.99q", begin, n>>20, got)
		_ = ln.Close()
	}
}

// lending is a daemon that lends a text to hooks. It notes what hooks confirm, and after how many requests on the same
// connection.
type lending struct {
	strict bool // it is of a version that knows no working directory of a hook

	confirmed chan string
}

func (l *lending) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn, _ := r.Context().Value(connection{}).(*int)
	*conn++
	if r.URL.Path == "/v1/init" && r.URL.Query().Get("confirm") == "true" {
		_ = json.NewEncoder(w).Encode(control.Init{SchemaVersion: 1, Text: initText, Receipt: "r-0"})
		return
	}
	var req control.PendingRequest
	switch err := json.NewDecoder(r.Body).Decode(&req); {
	case err != nil || req.Session != "s-1":
	case l.strict && req.Cwd != "":
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"code":"usage","message":"read request: json: unknown field \"cwd\""}`)
	case req.Receipt != "":
		l.confirmed <- fmt.Sprintf("%s in request %d", req.Receipt, *conn)
		_, _ = io.WriteString(w, `{"schema_version":1,"text":"","notices":0}`)
	case req.Confirm && (l.strict || req.Cwd == "/home/kim/shop"):
		_ = json.NewEncoder(w).Encode(control.Pending{SchemaVersion: 1, Text: noticeText, Notices: 1, Receipt: "r-1"})
	}
}

// connection is the key of the number of requests that came over a connection.
type connection struct{}

// TestHookConfirms: a hook confirms what it has printed before it ends: the daemon then knows of one that did not.
func TestHookConfirms(t *testing.T) {
	for _, c := range []struct {
		event  string
		strict bool
		want   string
	}{
		{"user-prompt-submit", false, "r-1 in request 2"},
		{"session-start", false, "r-0 in request 2"},
		{"post-tool-use", true, "r-1 in request 3"},
	} {
		l := &lending{strict: c.strict, confirmed: make(chan string, 9)}
		got := hookTells(t, serving(t, l), strings.NewReader(newInput), nil, c.event)
		kit.Check(t, strings.HasSuffix(got, `"}}`), "%s prints %q", c.event, got)
		kit.Equal(t, fmt.Sprintf("%s confirms", c.event), received(t, l.confirmed), c.want)
	}
}

// TestHookPrintsBeforeItConfirms: a hook whose confirmation is not heard has printed, and ends.
func TestHookPrintsBeforeItConfirms(t *testing.T) {
	deaf := func(w http.ResponseWriter, r *http.Request) {
		var req control.PendingRequest
		if json.NewDecoder(r.Body).Decode(&req) == nil && req.Receipt == "" {
			_ = json.NewEncoder(w).Encode(control.Pending{SchemaVersion: 1, Text: noticeText, Notices: 1, Receipt: "r-1"})
			return
		}
		<-r.Context().Done()
	}
	kit.Has(t, "it prints", hookTells(t, answering(t, deaf), strings.NewReader(newInput), nil, "pre-tool-use"), noticeText)
}
