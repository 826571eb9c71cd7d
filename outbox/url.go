package outbox

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
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

// retryAfterMax is the upper limit of a Retry-After.
const retryAfterMax = 10 * time.Minute

// hasToken reports whether a comma-separated header lists token with a weight other than 0.
func hasToken(values []string, token string) bool {
	for _, v := range values {
		for t := range strings.SplitSeq(v, ",") {
			name, weight, _ := strings.Cut(t, ";")
			if !strings.EqualFold(strings.TrimSpace(name), token) {
				continue
			}
			_, q, weighted := strings.Cut(weight, "=")
			if f, err := strconv.ParseFloat(strings.TrimSpace(q), 64); !weighted || err != nil || f > 0 {
				return true
			}
		}
	}
	return false
}

// retryAfter reads Retry-After: seconds, or a date relative to the answer's own Date, because clocks differ.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0
	}
	if seconds, err := strconv.ParseInt(v, 10, 64); err == nil {
		return time.Duration(min(max(seconds, 0), int64(retryAfterMax/time.Second))) * time.Second
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), retryAfterMax)
}

// shown is how many bytes of a message fit into a status line.
const shown = 200

// problemCode returns the code in an error body; "" if there is none.
func problemCode(text []byte) string {
	var body struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(text, &body) != nil {
		return ""
	}
	return body.Error.Code
}

// problemMessage returns the message in an error body; "" if there is none.
func problemMessage(text []byte) string {
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	if json.Unmarshal(text, &outer) != nil {
		return ""
	}
	words := outer.Message
	var inner struct {
		Message string `json:"message"`
	}
	var plain string
	switch {
	case json.Unmarshal(outer.Error, &inner) == nil && inner.Message != "":
		words = inner.Message
	case json.Unmarshal(outer.Error, &plain) == nil && plain != "":
		words = plain
	}
	return short(strings.Join(strings.Fields(words), " "))
}

// RedirectedTo returns where an answer sends its reader, in quotes, as far as it fits into a status line.
func RedirectedTo(h http.Header) string { return strconv.Quote(short(h.Get("Location"))) }

// short cuts a text of a server for a status line.
func short(text string) string {
	if len(text) <= shown {
		return text
	}
	return strings.ToValidUTF8(text[:shown], "") + "…"
}
