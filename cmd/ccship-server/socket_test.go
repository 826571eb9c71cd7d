//go:build unix

package main

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestListenSocket replaces the socket of a server that has ended, and nothing else.
func TestListenSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "ccs") // short enough for every system
	kit.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	at := filepath.Join(dir, "s")
	stale, err := net.Listen("unix", at)
	kit.Must(t, err)
	stale.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = stale.Close()
	ln, err := listenSocket(t.Context(), socketPath("unix://"+at))
	kit.Must(t, err)
	if info, err := os.Lstat(at); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if _, err := listenSocket(t.Context(), at); err == nil || !strings.Contains(err.Error(), "a server listens there") {
		t.Errorf("a second server: %v", err)
	}
	_ = ln.Close()
	kit.Must(t, os.WriteFile(at, []byte("mine"), 0o600))
	if _, err := listenSocket(t.Context(), at); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("over a file: %v", err)
	}
	if text, _ := os.ReadFile(at); string(text) != "mine" {
		t.Errorf("the file is %q", text)
	}
	for address, want := range map[string]string{"unix:/a/b": "/a/b", "unix:///a/b": "/a/b", "127.0.0.1:0": "", "unix": ""} {
		if got := socketPath(address); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}
