package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// socketPath returns the path in unix:PATH or unix:///PATH; "" for an address of a network.
func socketPath(address string) string {
	at, ok := strings.CutPrefix(address, "unix:")
	if !ok {
		return ""
	}
	return strings.TrimPrefix(at, "//")
}

// listenSocket listens on a Unix socket that only this user may connect to. The socket of a server that has ended is
// replaced; anything else that is there stays.
func listenSocket(ctx context.Context, at string) (net.Listener, error) {
	at, err := filepath.Abs(at)
	if err != nil {
		return nil, fmt.Errorf("listen on unix:%s: %w", at, err)
	}
	if err := removeStale(ctx, at); err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: ownerOnly}
	ln, err := config.Listen(ctx, "unix", at)
	if err == nil {
		if err = os.Chmod(at, 0o600); err != nil {
			err = errors.Join(err, ln.Close())
		}
	}
	if err != nil {
		return nil, hinted{fmt.Errorf("listen on unix://%s: %w", at, err),
			"choose a path of at most 103 bytes in a folder that you may write to"}
	}
	return ln, nil
}

// removeStale removes a socket that nobody listens on.
func removeStale(ctx context.Context, at string) error {
	info, err := os.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.Mode().Type() != fs.ModeSocket {
		return hinted{fmt.Errorf("listen on unix://%s: there is a file, and it is not a socket", at), "choose another path"}
	}
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "unix", at)
	if err == nil {
		return hinted{errors.Join(fmt.Errorf("listen on unix://%s: a server listens there", at), conn.Close()),
			"stop it, or choose another path"}
	}
	if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the socket of a server that has ended: %w", err)
	}
	return nil
}
