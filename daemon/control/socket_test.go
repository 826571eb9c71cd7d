package control

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

func TestListenModes(t *testing.T) {
	path := socketPath(t)
	ln := kit.Try(Listen(path)).Must(t)
	defer ln.Close()
	if runtime.GOOS == "windows" {
		return
	}
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		info := kit.Try(os.Lstat(name)).Must(t)
		kit.Check(t, info.Mode().Perm() == want, "%s: %v, want %v", name, info.Mode(), want)
	}
}

// A socket whose daemon was killed is replaced; one that answers is not.
func TestListenOverSocket(t *testing.T) {
	path := socketPath(t)
	kit.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	stale := kit.Try(net.ListenUnix("unix", &net.UnixAddr{Name: path})).Must(t)
	stale.SetUnlinkOnClose(false)
	kit.Must(t, stale.Close())
	if _, err := os.Lstat(path); err != nil {
		t.Fatalf("no stale socket to begin with: %v", err)
	}
	ln, err := Listen(path)
	kit.Require(t, err == nil, "over a stale socket: %v", err)
	defer ln.Close()
	kit.Err(t, "over a live socket", ErrInUse)(Listen(path))
	conn, err := net.Dial("unix", path)
	kit.Require(t, err == nil, "the live socket was harmed: %v", err)
	conn.Close()
}

// What is no socket is a user's file: it stays.
func TestListenOverForeign(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	target := filepath.Join(t.TempDir(), "target")
	for _, create := range map[string]func() error{
		"file":   func() error { return os.WriteFile(path, []byte("mine"), 0o600) },
		"folder": func() error { return os.Mkdir(path, 0o700) },
		"link":   func() error { return errors.Join(os.WriteFile(target, nil, 0o600), os.Symlink(target, path)) },
	} {
		kit.Must(t, create())
		_, err := Listen(path)
		e, ok := errors.AsType[*Error](err)
		kit.Check(t, ok && e.Code == CodeSocket && e.Hint != "", "%v, want a %s error with a hint", err, CodeSocket)
		_, err = Dial(path).Status(t.Context())
		kit.Check(t, err != nil && !errors.Is(err, ErrNotRunning), "client: %v, want that it is no socket", err)
		_, err = os.Lstat(path)
		kit.Check(t, err == nil, "it was removed: %v", err)
		kit.Must(t, os.RemoveAll(path))
	}
}

func TestPathTooLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), strings.Repeat("x", maxPath))
	_, listenErr := Listen(path)
	_, dialErr := Dial(path).Status(t.Context())
	for name, err := range map[string]error{"Listen": listenErr, "Dial": dialErr} {
		e, ok := errors.AsType[*Error](err)
		kit.Check(t, ok && e.Code == CodeSocket && strings.Contains(e.Message, "bytes"), "%s: %v, want a %s error that says how long it may be", name, err, CodeSocket)
	}
}

func TestNotRunning(t *testing.T) {
	missing := socketPath(t)
	stale := socketPath(t)
	ln := kit.Try(Listen(stale)).Must(t)
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	kit.Must(t, ln.Close())
	for name, path := range map[string]string{"missing": missing, "stale": stale} {
		kit.Err(t, name, ErrNotRunning)(Dial(path).Status(t.Context()))
	}
}

// A daemon that was stopped still has its socket in the kernel, which goes on connecting callers for it.
func TestFrozenDaemon(t *testing.T) {
	path := socketPath(t)
	ln := kit.Try(Listen(path)).Must(t)
	defer ln.Close()
	_, err := Dial(path).Status(t.Context())
	e, ok := errors.AsType[*Error](err)
	kit.Check(t, ok && e.Code == CodeNoAnswer && e.Hint != "", "%v, want a %s error with a hint", err, CodeNoAnswer)
}

// The client's patience with a verify is with its silence, not with its length.
func TestVerifyHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		d := &fake{verify: func(context.Context, VerifyRequest, func(VerifyProgress)) (VerifyReport, error) {
			<-time.After(time.Hour) // of the bubble's time: the comparison itself
			return VerifyReport{Equal: true}, nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- newPipeEndpoint(d).Serve(ctx, &pipeListener{conn: there, closed: make(chan struct{})})
		}()
		report, err := pipeClient(here).Verify(t.Context(), VerifyRequest{}, nil)
		kit.Check(t, err == nil && report.Equal, "Verify: %+v %v", report, err)
		cancel()
		kit.Err(t, "Serve", nil)(<-ended)
	})
}

func TestVerifyStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		go func() { // reads everything and never says a word
			buffer := make([]byte, 4096)
			for {
				if _, err := there.Read(buffer); err != nil {
					return
				}
			}
		}()
		begun := time.Now()
		_, err := pipeClient(here).Verify(t.Context(), VerifyRequest{}, nil)
		if e, ok := errors.AsType[*Error](err); !ok || e.Code != CodeNoAnswer || time.Since(begun) != verifyStall {
			t.Errorf("%v after %v, want a %s error after %v", err, time.Since(begun), CodeNoAnswer, verifyStall)
		}
	})
}

// A daemon that ends while it is asked is one that does not run.
func TestEndsWhileAsked(t *testing.T) {
	path := socketPath(t)
	ln := kit.Try(Listen(path)).Must(t)
	go func() {
		conn, err := ln.Accept()
		if err == nil {
			err = errors.Join(ln.Close(), conn.Close())
		}
		kit.Check(t, err == nil, "%v", err)
	}()
	kit.Err(t, "Status", ErrNotRunning)(Dial(path).Status(t.Context()))
}
