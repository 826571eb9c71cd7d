package outbox

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
)

// suffix ends the host of a base URL whose requests go to a Unix socket. Before it is the socket's path, in hex.
// No name of a network ends like that (RFC 2606).
const suffix = ".unix.invalid"

// maxPath is how long the path of a socket may be, on every system.
const maxPath = 103

// socketBase returns the base URL of requests to unix:///PATH, and the one spelling of that.
func socketBase(u *url.URL) (*url.URL, string, error) {
	at := u.Path
	switch {
	case u.Host != "" || len(at) < 2 || at[0] != '/' || path.Clean(at) != at || u.RawQuery != "" || u.Fragment != "":
		return nil, "", errors.New("the URL of a Unix socket names an absolute path: write unix:///run/ccship/server.sock")
	case len(at) > maxPath:
		return nil, "", fmt.Errorf("the path of a Unix socket has at most %d bytes: choose a shorter one", maxPath)
	}
	base := &url.URL{Scheme: "http", Host: hex.EncodeToString([]byte(at)) + suffix}
	return base, (&url.URL{Scheme: "unix", Path: at}).String(), nil
}

// pathOf returns the path of the socket that a host of socketBase stands for; "": it is a host of a network.
func pathOf(host string) string {
	encoded, ok := strings.CutSuffix(host, suffix)
	at, err := hex.DecodeString(encoded)
	if !ok || err != nil {
		return ""
	}
	return string(at)
}

// spellAddress writes a base URL as people do.
func spellAddress(base *url.URL) string {
	if at := pathOf(base.Hostname()); at != "" {
		base = &url.URL{Scheme: "unix", Path: at}
	}
	return base.String()
}

// dialer connects to hosts, and to the sockets that some of them stand for.
type dialer struct{ net.Dialer }

// Dial is http.Transport.DialContext.
func (d *dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if at := pathOf(host); at != "" {
		network, address = "unix", at
	}
	return d.DialContext(ctx, network, address)
}

// proxyOf is http.Transport.Proxy: the proxy that the environment names; none for a socket.
func proxyOf(req *http.Request) (*url.URL, error) {
	if pathOf(req.URL.Hostname()) != "" {
		return nil, nil //nolint:nilnil // as http.Transport asks for it
	}
	return http.ProxyFromEnvironment(req)
}
