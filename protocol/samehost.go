package protocol

// A server proves over a connection that it runs on the client's machine, for the same user. A loopback address proves
// nothing: a tunnel ends there too. The client makes a file with a random key in a folder that only this user can read,
// and names the file to the server. The server answers with an HMAC, under that key, of both ends of its own
// connection. Behind a tunnel or a proxy the connection has other ends, so the question cannot be relayed to a server
// that could answer it.

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/ccship/ccship/internal/sys"
)

// SameHostPath is where a server proves to be on the client's machine, below its base path.
const SameHostPath = "/here"

const (
	hostKeySize  = 32
	hostPatience = 10 * time.Second // a process of this machine answers at once, unless the machine is very busy
)

// ErrOtherHost means that a server has not proven to be on this machine.
var ErrOtherHost = errors.New("the server has not proven to be on this machine")

// AskSameHost asks the server at a base URL, or at unix:///PATH, for the proof. The error wraps ErrOtherHost if
// the server answers without one.
func AskSameHost(ctx context.Context, address string) error {
	base, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("ask for the proof: %w", err)
	}
	id, key, remove, err := hostChallenge()
	if err != nil {
		return fmt.Errorf("ask for the proof: %w", err)
	}
	defer remove()
	ctx, cancel := context.WithTimeout(ctx, hostPatience)
	defer cancel()
	var d hostDialer
	web := http.Client{
		Transport:     &http.Transport{DialContext: d.dial, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if base.Scheme == "unix" {
		d.socket, base = base.Path, &url.URL{Scheme: "http", Host: "localhost"}
	}
	to := base.JoinPath(SameHostPath)
	to.RawQuery = "id=" + id
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return fmt.Errorf("ask for the proof: %w", err)
	}
	answer, err := web.Do(req)
	if err != nil {
		return fmt.Errorf("ask for the proof: %w", err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(io.LimitReader(answer.Body, 2*sha256.Size))
	if err != nil {
		return fmt.Errorf("ask for the proof: %w", err)
	}
	server, client := d.ends()
	if answer.StatusCode != http.StatusOK || !hmac.Equal(got, hostProof(key, id, server, client)) {
		return ErrOtherHost
	}
	return nil
}

// hostChallenge makes the file with the key; remove removes it.
func hostChallenge() (id string, key []byte, remove func(), err error) {
	dir, err := sys.UserFolder()
	if err != nil {
		return "", nil, nil, err
	}
	random := make([]byte, 16+hostKeySize)
	_, _ = rand.Read(random) // never fails
	id, key = hex.EncodeToString(random[:16]), random[16:]
	path := hostKeyFile(dir, id)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", nil, nil, err
	}
	remove = func() { _ = os.Remove(path) } // a file that remains is harmless
	_, err = f.Write(key)
	if err = errors.Join(err, f.Close()); err != nil {
		remove()
		return "", nil, nil, err
	}
	return id, key, remove, nil
}

func hostKeyFile(dir, id string) string { return filepath.Join(dir, "ccship-here-"+id) }

// hostDialer dials loopback addresses or a socket, and remembers the ends of the last connection.
type hostDialer struct {
	socket string // its path; "": none

	mu            sync.Mutex
	local, remote net.Addr // guarded by mu
}

func (d *hostDialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var n net.Dialer
	if d.socket != "" {
		network, address = "unix", d.socket
	}
	conn, err := n.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if !isHere(conn.RemoteAddr()) {
		return nil, errors.Join(ErrOtherHost, conn.Close())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.local, d.remote = conn.LocalAddr(), conn.RemoteAddr()
	return conn, nil
}

func (d *hostDialer) ends() (server, client string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.local == nil {
		return "", ""
	}
	return ends(d.remote, d.local.String())
}

// ends are both ends of a connection, as both of its processes see them. Of a Unix socket only its path counts.
func ends(server net.Addr, client string) (string, string) {
	if server.Network() == "unix" {
		at, err := filepath.EvalSymlinks(server.String())
		if err != nil {
			at = server.String()
		}
		return "unix " + at, "unix"
	}
	return end(server.String()).String(), end(client).String()
}

// end returns one end of a connection of a network.
func end(address string) netip.AddrPort {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// isHere reports whether an address is a socket or a loopback address.
func isHere(a net.Addr) bool { return a.Network() == "unix" || end(a.String()).Addr().IsLoopback() }

// hostProof returns what a server answers over a connection.
func hostProof(key []byte, id, server, client string) []byte {
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "ccship here\n%s\n%s\n%s\n", id, server, client)
	return hex.AppendEncode(nil, h.Sum(nil))
}

// OverSocket says whether a request came over a Unix socket, which no web page and no other machine can reach.
func OverSocket(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && at.Network() == "unix"
}

var hostIDForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// AnswerSameHost handles GET SameHostPath?id=: it proves that this process can read the client's file, or answers 404.
func AnswerSameHost(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("id")
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	key, err := readHostKey(id)
	if !ok || err != nil || !OverSocket(r) && !end(r.RemoteAddr).Addr().IsLoopback() {
		http.Error(w, "no such file of this user on this machine", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Cache-Control", "no-store")
	server, client := ends(local, r.RemoteAddr)
	_, _ = w.Write(hostProof(key, id, server, client)) // a caller that has gone gets no proof
}

// readHostKey reads the key of a client of this user.
func readHostKey(id string) ([]byte, error) {
	if !hostIDForm.MatchString(id) {
		return nil, errors.New("not an id")
	}
	dir, err := sys.UserFolder()
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(hostKeyFile(dir, id))
	if err != nil || !info.Mode().IsRegular() || info.Size() != hostKeySize {
		return nil, errors.Join(errors.New("not a key"), err)
	}
	key, err := os.ReadFile(hostKeyFile(dir, id))
	if err == nil && len(key) != hostKeySize {
		err = errors.New("not a key")
	}
	return key, err
}
