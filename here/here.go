// Package here proves over a connection that the process at its other end runs on this machine, for the same user. A
// loopback address proves nothing: a tunnel ends there too. It does not know what follows from the proof.
//
// The client makes a file with a random key in a folder that only this user of this machine can read, and names the
// file to the server. The server answers an HMAC, with that key, of both ends of its own connection. Behind a tunnel or
// a proxy the connection has other ends, so nobody can pass the question on to a server that can answer it.
package here

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
)

// Path is where a server answers, below its base path.
const Path = "/here"

const (
	keySize  = 32
	patience = 2 * time.Second // a process of this machine answers at once
)

// ErrElsewhere says that a server has not proven to be on this machine.
var ErrElsewhere = errors.New("the server has not proven to be on this machine")

// Ask asks the server at a base URL for the proof. The error wraps ErrElsewhere if the server answers without one.
func Ask(ctx context.Context, server string) error {
	base, err := url.Parse(server)
	if err != nil {
		return fmt.Errorf("ask for the proof: %w", err)
	}
	id, key, remove, err := challenge()
	if err != nil {
		return fmt.Errorf("ask for the proof: %w", err)
	}
	defer remove()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var d dialer
	client := http.Client{
		Transport:     &http.Transport{DialContext: d.dial, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	to := base.JoinPath(Path)
	to.RawQuery = "id=" + id
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return fmt.Errorf("ask for the proof: %w", err)
	}
	answer, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("ask for the proof: %w", err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(io.LimitReader(answer.Body, 2*sha256.Size))
	if err != nil {
		return fmt.Errorf("ask for the proof: %w", err)
	}
	local, remote := d.ends()
	if answer.StatusCode != http.StatusOK || !hmac.Equal(got, proof(key, id, remote, local)) {
		return ErrElsewhere
	}
	return nil
}

// challenge makes the file with the key; remove removes it.
func challenge() (id string, key []byte, remove func(), err error) {
	dir, err := Folder()
	if err != nil {
		return "", nil, nil, err
	}
	random := make([]byte, 16+keySize)
	_, _ = rand.Read(random) // never fails
	id, key = hex.EncodeToString(random[:16]), random[16:]
	path := keyFile(dir, id)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", nil, nil, err
	}
	remove = func() { _ = os.Remove(path) } // what stays is of no use to anybody
	_, err = f.Write(key)
	if err = errors.Join(err, f.Close()); err != nil {
		remove()
		return "", nil, nil, err
	}
	return id, key, remove, nil
}

func keyFile(dir, id string) string { return filepath.Join(dir, "ccship-here-"+id) }

// dialer dials loopback addresses, and remembers the ends of the last connection.
type dialer struct {
	mu            sync.Mutex
	local, remote net.Addr // guarded by mu
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var n net.Dialer
	conn, err := n.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if to := end(conn.RemoteAddr().String()); !to.Addr().IsLoopback() {
		return nil, errors.Join(ErrElsewhere, conn.Close())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.local, d.remote = conn.LocalAddr(), conn.RemoteAddr()
	return conn, nil
}

func (d *dialer) ends() (local, remote netip.AddrPort) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.local == nil {
		return netip.AddrPort{}, netip.AddrPort{}
	}
	return end(d.local.String()), end(d.remote.String())
}

// end is one end of a connection, as both of its processes see it.
func end(address string) netip.AddrPort {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// proof is what a server answers over a connection.
func proof(key []byte, id string, server, client netip.AddrPort) []byte {
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "ccship here\n%s\n%s\n%s\n", id, server, client)
	return hex.AppendEncode(nil, h.Sum(nil))
}

var idForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// Answer handles GET Path?id=: it proves that this process can read the client's file, or answers 404.
func Answer(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("id")
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	key, err := readKey(id)
	if !ok || err != nil || !end(r.RemoteAddr).Addr().IsLoopback() {
		http.Error(w, "no such file of this user on this machine", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(proof(key, id, end(local.String()), end(r.RemoteAddr))) // whoever has gone gets no proof
}

// readKey reads the key of a client of this user.
func readKey(id string) ([]byte, error) {
	if !idForm.MatchString(id) {
		return nil, errors.New("not an id")
	}
	dir, err := Folder()
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(keyFile(dir, id))
	if err != nil || !info.Mode().IsRegular() || info.Size() != keySize {
		return nil, errors.Join(errors.New("not a key"), err)
	}
	key, err := os.ReadFile(keyFile(dir, id))
	if err == nil && len(key) != keySize {
		err = errors.New("not a key")
	}
	return key, err
}
