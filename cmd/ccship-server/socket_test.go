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
	dir := kit.Try(os.MkdirTemp("", "ccs")).Must(t) // short enough for every system
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	at := filepath.Join(dir, "s")
	stale := kit.Try(net.Listen("unix", at)).Must(t)
	stale.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = stale.Close()
	ln := kit.Try(listenSocket(t.Context(), socketPath("unix://"+at))).Must(t)
	if info, err := os.Lstat(at); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	_, err := listenSocket(t.Context(), at)
	kit.Check(t, err != nil && strings.Contains(err.Error(), "a server listens there"), "a second server: %v", err)
	_ = ln.Close()
	kit.Must(t, os.WriteFile(at, []byte("mine"), 0o600))
	_, err = listenSocket(t.Context(), at)
	kit.Check(t, err != nil && strings.Contains(err.Error(), "not a socket"), "over a file: %v", err)
	text, _ := os.ReadFile(at)
	kit.Check(t, string(text) == "mine", "the file is %q", text)
	for address, want := range map[string]string{"unix:/a/b": "/a/b", "unix:///a/b": "/a/b", "127.0.0.1:0": "", "unix": ""} {
		kit.Equal(t, address, socketPath(address), want)
	}
}
