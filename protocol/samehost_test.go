package protocol

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/internal/sys"
)

// serve is a server on this machine.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// TestSameHost has a server of this user prove that it is here, below its base path too.
func TestSameHost(t *testing.T) {
	dir := kit.Try(sys.UserFolder()).Must(t)
	var files []string // that the questions named; other processes of this user ask too
	answer := func(w http.ResponseWriter, r *http.Request) {
		files = append(files, hostKeyFile(dir, r.URL.Query().Get("id")))
		AnswerSameHost(w, r)
	}
	kit.Should(t, AskSameHost(t.Context(), serve(t, answer)))
	below := serve(t, http.StripPrefix("/base", http.HandlerFunc(answer)).ServeHTTP)
	kit.Err(t, "below a base path", nil)(AskSameHost(t.Context(), below+"/base"))
	kit.Equal(t, fmt.Sprintf("asked with %q", files), len(files), 2)
	for _, path := range files {
		kit.Err(t, path+" is left", fs.ErrNotExist)(os.Lstat(path))
	}
}

// serveSocket is a server on a Unix socket.
func serveSocket(t *testing.T, at string, h http.HandlerFunc) {
	t.Helper()
	ln := kit.Try(net.Listen("unix", at)).Must(t)
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close()
	s.Listener = ln
	s.Start()
	t.Cleanup(s.Close)
}

// TestSameHostSocket has a server on a Unix socket prove that it is here, under any name of its folder. A server that passes
// the question on from another socket proves nothing.
func TestSameHostSocket(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no links")
	}
	dir, err := os.MkdirTemp("", "here") // short enough for every system
	kit.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	own, tunnel := filepath.Join(dir, "own"), filepath.Join(dir, "tunnel")
	serveSocket(t, own, AnswerSameHost)
	kit.Should(t, AskSameHost(t.Context(), "unix://"+own))
	kit.Must(t, os.Symlink(dir, dir+"-too"))
	t.Cleanup(func() { _ = os.Remove(dir + "-too") })
	kit.Err(t, "by another name of its folder", nil)(AskSameHost(t.Context(), "unix://"+dir+"-too/own"))
	ln := kit.Try(net.Listen("unix", tunnel)).Must(t)
	defer ln.Close()
	go func() {
		for {
			from, err := ln.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("unix", own)
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
			go func() { _, _ = io.Copy(from, to); _ = from.Close() }()
		}
	}()
	kit.Err(t, "through another socket", ErrOtherHost)(AskSameHost(t.Context(), "unix://"+tunnel))
	kit.Check(t, AskSameHost(t.Context(), "unix://"+filepath.Join(dir, "none")) != nil, "nobody proves that it is here")
}

// TestSameHostNoProof: a server that passes the question on to a server that can answer it proves nothing, nor does anybody who
// cannot read the file.
func TestSameHostNoProof(t *testing.T) {
	own := serve(t, AnswerSameHost)
	to := kit.Try(url.Parse(own)).Must(t)
	for name, address := range map[string]string{
		"tunnel": tunnel(t, to.Host),
		"proxy":  serve(t, httputil.NewSingleHostReverseProxy(to).ServeHTTP),
		"redirect": serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, own+r.URL.RequestURI(), http.StatusSeeOther)
		}),
		"silent":    serve(t, func(http.ResponseWriter, *http.Request) {}),
		"echo":      serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.Query().Get("id")) }),
		"no server": "http://127.0.0.1:1",
		"elsewhere": "http://192.0.2.1:9",
		"no URL":    "http://%zz",
	} {
		ctx := t.Context()
		if name == "elsewhere" {
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx)
			cancel()
		}
		kit.Check(t, AskSameHost(ctx, address) != nil, "%s proves that it is here", name)
	}
	kit.Err(t, "a server without an answer", ErrOtherHost)(AskSameHost(t.Context(), serve(t, http.NotFound)))
}

// tunnel passes connections on, as ssh -L does, and returns its address.
func tunnel(t *testing.T, to string) string {
	t.Helper()
	ln := kit.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	var open sync.WaitGroup
	t.Cleanup(func() { ln.Close(); open.Wait() })
	open.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer in.Close()
				out, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer out.Close()
				go io.Copy(out, in)
				io.Copy(in, out)
			})
		}
	})
	return "http://" + ln.Addr().String()
}

// TestSameHostAnswer reads only what a client of this user made.
func TestSameHostAnswer(t *testing.T) {
	dir := kit.Try(sys.UserFolder()).Must(t)
	id := "aa" + hex.EncodeToString([]byte(rand.Text()[:15])) // not that of another run
	path := hostKeyFile(dir, id)
	t.Cleanup(func() { os.Remove(path) })
	own := serve(t, AnswerSameHost)
	ask := func(id string) int {
		t.Helper()
		resp := kit.Try(http.Get(own + "?id=" + url.QueryEscape(id))).Must(t)
		resp.Body.Close()
		return resp.StatusCode
	}
	for _, bad := range []string{"", "../x", id, strings.ToUpper(id), id + "/../" + id} {
		kit.Equal(t, bad, ask(bad), http.StatusNotFound)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	kit.Must(t, os.WriteFile(secret, make([]byte, hostKeySize), 0o600))
	if err := os.Symlink(secret, path); err == nil {
		kit.Equal(t, "a link", ask(id), http.StatusNotFound)
		os.Remove(path)
	}
	kit.Must(t, os.WriteFile(path, make([]byte, hostKeySize), 0o600))
	kit.Equal(t, "a key", ask(id), http.StatusOK)
}
