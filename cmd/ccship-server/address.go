package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/ccship/ccship/internal/sys"
)

// served is the address that a server of a store has, or had last. It is kept next to the store, so that other commands
// need no flag for it.
type served struct {
	Listen string `json:"listen"`               // as --listen takes it, with the port that was chosen
	URL    string `json:"url"`                  // on this machine; unix:///PATH for a socket
	Public string `json:"public_url,omitempty"` // where browsers reach it, if that was given
}

// servedFile returns the file next to a store that keeps the address; "" where there is no folder for it.
func servedFile(store string) string {
	if path, ok := strings.CutPrefix(store, "sqlite:"); ok {
		return path + ".address"
	}
	dir := stateDir()
	if dir == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(store)) // the address of a database may contain its password
	return filepath.Join(dir, hex.EncodeToString(sum[:8])+".address")
}

// keep writes the address down.
func (s served) keep(store string) error {
	path := servedFile(store)
	if path == "" {
		return nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return sys.WriteFile(path, append(text, '\n'))
}

// lastServed reads the address; ok is false while no server has used the store.
func lastServed(store string) (s served, ok bool) {
	text, err := os.ReadFile(servedFile(store))
	return s, err == nil && json.Unmarshal(text, &s) == nil && s.URL != ""
}

// servedAt returns the address of a server that listens.
func servedAt(ln net.Listener, f serveFlags) served {
	if ln.Addr().Network() == "unix" {
		at := "unix://" + (&url.URL{Path: ln.Addr().String()}).EscapedPath()
		return served{Listen: "unix://" + ln.Addr().String(), URL: at, Public: f.publicURL}
	}
	scheme := "http"
	if f.tlsCert != "" {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(ln.Addr().String())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	listen := ln.Addr().String()
	if asked, _, err := net.SplitHostPort(f.listen); err == nil {
		listen = net.JoinHostPort(asked, port)
	}
	return served{Listen: listen, URL: scheme + "://" + net.JoinHostPort(host, port) + f.base, Public: f.publicURL}
}

// browserURL returns where a browser reaches the server of a store: the address given, else the one it serves.
func browserURL(given, store string) (string, error) {
	if given != "" {
		return given, nil
	}
	at, ok := lastServed(store)
	switch {
	case !ok:
		return defaultURL, nil
	case at.Public != "":
		return at.Public, nil
	case strings.HasPrefix(at.URL, "unix:"):
		return "", usageError{hinted{errors.New("the server listens on a Unix socket, which no browser reaches"),
			"give the address of the proxy in front of it with --public-url"}}
	}
	return at.URL, nil
}

// defaultURL is the address of a server that was started without options.
const defaultURL = "http://127.0.0.1:5000"
