//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/store/pgtest"
)

// TestServeWhileMigrating: a server that waits for one that changes the schema answers meanwhile, and says why it
// refuses. Once that one is done it makes the schema and serves, and tells the service manager both.
func TestServeWhileMigrating(t *testing.T) {
	c := pgtest.New(t, pgtest.Fast)
	other := changer(t, c.URL("postgres"))
	ln := kit.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t) // a port that is free
	address := ln.Addr().String()
	kit.Must(t, ln.Close())
	manager := filepath.Join(t.TempDir(), "n")
	told := kit.Try(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: manager, Net: "unixgram"})).Must(t)
	defer told.Close()
	exe := kit.Try(os.Executable()).Must(t)
	cmd := exec.CommandContext(t.Context(), exe, "serve", "--listen", address, "--store", c.URL("postgres"))
	cmd.Env = append(os.Environ(), asServer+"=1", "NOTIFY_SOCKET="+manager, "XDG_STATE_HOME="+t.TempDir())
	words := kit.Try(cmd.StderrPipe()).Must(t)
	kit.Must(t, cmd.Start())
	log := bufio.NewReader(words)
	if line, err := log.ReadString('\n'); err != nil || !strings.Contains(line, "503") || !strings.Contains(line, "another server updates the schema") {
		t.Fatalf("it says %q, %v", line, err)
	}
	for path, want := range map[string]string{"/healthz": `"state":"starting"`, "/api/sessions": `"code":"starting"`} {
		a := kit.Try(http.Get("http://" + address + path)).Must(t)
		body, err := io.ReadAll(a.Body)
		a.Body.Close()
		kit.Check(t, err == nil && a.StatusCode == http.StatusServiceUnavailable && a.Header.Get("Retry-After") != "" &&
			json.Valid(body) && strings.Contains(string(body), want) &&
			strings.Contains(string(body), "another server updates the schema"),
			"%s: %d %v %s %v", path, a.StatusCode, a.Header, body, err)
	}
	expectTold(t, told, "EXTEND_TIMEOUT_USEC=")
	kit.Must(t, other())
	for {
		line, err := log.ReadString('\n')
		kit.Require(t, err == nil, "it does not serve: %v", err)
		if strings.HasPrefix(line, "listening on ") {
			break
		}
	}
	expectTold(t, told, "READY=1")
	kit.Must(t, cmd.Process.Signal(syscall.SIGTERM))
	expectTold(t, told, "STOPPING=1")
	kit.Must(t, cmd.Wait())
}

// changer is what is seen of a server that changes the schema of a database: it has the turn, until end.
func changer(t *testing.T, at string) (end func() error) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), at)
	if err == nil {
		_, err = conn.Exec(t.Context(), `SELECT pg_advisory_lock($1, 0)`, 0x6363_0000)
	}
	kit.Must(t, err)
	return func() error { return conn.Close(context.Background()) }
}

// expectTold waits until the service manager gets something.
func expectTold(t *testing.T, from *net.UnixConn, what string) {
	t.Helper()
	kit.Must(t, from.SetReadDeadline(time.Now().Add(5*time.Minute)))
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		kit.Require(t, err == nil, "the service manager is not told %s: %v", what, err)
		if strings.Contains(string(buf[:n]), what) {
			return
		}
	}
}
