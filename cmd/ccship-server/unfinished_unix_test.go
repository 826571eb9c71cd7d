//go:build unix

package main

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ccship/ccship/e2e/kit"
)

// fewDescriptors, as the value of asServer, is a server that may open few files.
const fewDescriptors = "few-descriptors"

func init() {
	if os.Getenv(asServer) == fewDescriptors {
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 256, Max: 256}) // the test sees it
	}
}

// unfinished are requests that never end, of nobody and of a user with a key.
func unfinished(key string) map[string]string {
	const body, half = "Content-Length: 100000\r\n\r\n{", "Content-Length: 1000\r\n\r\n{"
	known := " HTTP/1.1\r\nHost: x\r\nX-API-Key: " + key + "\r\n"
	return map[string]string{
		"nothing":             "",
		"half a header":       "GET / HTTP/1.1\r\nHo",
		"half a login":        "POST /login HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n" + half,
		"lines of nobody":     "POST /api/conversations HTTP/1.1\r\nHost: x\r\n" + body,
		"lines":               "POST /api/conversations" + known + body,
		"lines in chunks":     "POST /api/conversations" + known + "Transfer-Encoding: chunked\r\n\r\n9\r\n{",
		"a document":          "PUT /api/views/x" + known + half,
		"a body of a GET":     "GET /api/me" + known + body,
		"unread events":       "GET /api/events" + known + "\r\n",
		"unread pages":        strings.Repeat("GET /assets/viewer.js HTTP/1.1\r\nHost: x\r\n\r\n", 20),
		"unread refusals":     strings.Repeat("GET /api/nothing"+known+"\r\n", 50),
		"a refused long body": "PUT /api/nothing" + known + body,
	}
}

// TestUnfinishedRequests, where a process may open few files: twice as many connections as there may be, all in requests that never end, of one user or of
// nobody. Other users are answered, the server stops when it is told to, and once they are gone it has their descriptors
// back.
func TestUnfinishedRequests(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.db")
	key := newKeyIn(t, path)
	for name, request := range unfinished(key) {
		t.Run(name, func(t *testing.T) {
			p := launchAs(t, asServer+"="+fewDescriptors, "--store", "sqlite:"+path)
			siege := func() (leave func()) {
				var all []net.Conn
				for range 300 {
					conn := kit.Try(net.DialTimeout("tcp", strings.TrimPrefix(p.url, "http://"), 2*time.Minute)).Must(t)
					all = append(all, conn)
					_, _ = io.WriteString(conn, request) // may be closed already: it is one of too many
				}
				return func() {
					for _, conn := range all {
						conn.Close()
					}
				}
			}
			client := http.Client{Timeout: time.Minute}
			defer client.CloseIdleConnections()
			answered := func() {
				t.Helper()
				for _, path := range []string{"/healthz", "/login"} {
					kit.Eventually(t, path+" is answered", 10*time.Second, func() bool {
						status, _, err := p.call("", "GET", path, nil)
						return err == nil && status == 200
					})
				}
			}
			leave := siege()
			answered()
			leave()
			kit.Eventually(t, "its connections are gone", 2*time.Minute, func() bool {
				_, text, err := p.call(key, "GET", "/metrics", nil)
				_, rest, found := strings.Cut(string(text), "\nccship_server_connections ")
				open, _, _ := strings.Cut(rest, "\n")
				return err == nil && found && len(open) == 1 // those that answered left open
			})
			defer siege()()
			answered()
			kit.Must(t, p.cmd.Process.Signal(syscall.SIGTERM))
			kit.Err(t, "the server's end", nil)(p.cmd.Wait())
		})
	}
}
