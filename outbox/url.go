package outbox

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// NormalizeURL parses a server's address as people write it. It returns the base URL of requests and the one spelling
// that names the destination in the queue. The error is one line that says what to write instead.
func NormalizeURL(raw string) (*url.URL, string, error) {
	raw = strings.TrimSpace(raw)
	if raw == "" {
		return nil, "", errors.New("server URL is empty: write one like http://localhost:5000")
	}
	if !strings.Contains(raw, "://") {
		raw = raw[strings.LastIndexByte(raw, '@')+1:] // without a password
		return nil, "", fmt.Errorf("server URL %q has no scheme: write http://%s or https://%s", raw, raw, raw)
	}
	u, err := url.Parse(raw)
	if err != nil {
		var parse *url.Error
		if errors.As(err, &parse) {
			err = parse.Err // without the URL, which may hold a password
		}
		return nil, "", fmt.Errorf("read server URL: %w: write one like http://localhost:5000", err)
	}
	u.Scheme = strings.ToLower(u.Scheme)
	switch {
	case u.Scheme == "unix" && u.User == nil:
		return socketBase(u)
	case u.User != nil:
		return nil, "", errors.New("server URL holds a user or password: put the key into the API key file instead")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, "", fmt.Errorf("server URL %q is not supported: only http://, https:// and unix:// are", raw)
	case u.Hostname() == "":
		return nil, "", fmt.Errorf("server URL %q names no host: write one like http://localhost:5000", raw)
	case !validPort(u.Port()):
		return nil, "", fmt.Errorf("server URL %q has a port that is out of range", raw)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, "", fmt.Errorf("server URL %q has a query or fragment: leave out what follows the path", raw)
	}
	u.Host = normalHost(u)
	trimmed := u.JoinPath() // cleans dots and doubled slashes
	trimmed.Path = strings.TrimSuffix(strings.TrimRight(trimmed.Path, "/"), "/api/conversations")
	trimmed.RawPath = strings.TrimSuffix(strings.TrimRight(trimmed.RawPath, "/"), "/api/conversations")
	return trimmed, trimmed.String(), nil
}

// normalHost returns the host in lower case, without the default port of the scheme.
func normalHost(u *url.URL) string {
	host, port := strings.ToLower(u.Hostname()), u.Port()
	byDefault := u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443"
	if port != "" && !byDefault {
		return net.JoinHostPort(host, port)
	}
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// validPort reports whether a port can be dialled; "" stands for the scheme's default.
func validPort(port string) bool {
	n, err := strconv.Atoi(port)
	return port == "" || err == nil && n >= 1 && n <= 65535
}
