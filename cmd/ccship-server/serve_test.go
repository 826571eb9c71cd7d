package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/store/sqlite"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// program is the server as a process of its own.
type program struct {
	cmd *exec.Cmd
	url string
}

// launch starts serve and waits until it listens.
func launch(t *testing.T, path string, args ...string) *program {
	t.Helper()
	return launchAs(t, asServer+"=1", append([]string{"--store", "sqlite:" + path}, args...)...)
}

// launchAs is launch with a setting that says what the test binary is.
func launchAs(t *testing.T, as string, args ...string) *program {
	t.Helper()
	exe := kit.Try(os.Executable()).Must(t)
	args = append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), as)
	stderr := kit.Try(cmd.StderrPipe()).Must(t)
	kit.Must(t, cmd.Start())
	first, err := bufio.NewReader(stderr).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(first), "listening on ")
	kit.Require(t, err == nil && ok, "it says %q, %v", first, err)
	return &program{cmd, url}
}

func newKeyIn(t *testing.T, path string) string {
	t.Helper()
	st := kit.Try(sqlite.Open(t.Context(), path, sqlstore.Opening{})).Must(t)
	key, hash := auth.NewKey()
	u := kit.Try(st.AddUser(t.Context(), "owner", server.Owner, server.By{At: time.Now()})).Must(t)
	kit.Must(t, st.AddKey(t.Context(), server.Key{User: u, Name: "test", Hash: hash, Created: time.Now()}))
	kit.Must(t, st.Close())
	return key
}

// send posts one line; nil when it was acknowledged.
func (p *program) send(key, session string, line int) error {
	return p.post(key, fmt.Sprintf(`{"session_id":%q,"entries":[{"line_index":%d,"n":%d,"pad":%q}]}`, session, line, line, strings.Repeat("x", 3000)))
}

// post posts lines; nil when they were acknowledged.
func (p *program) post(key, body string) error {
	status, answer, err := p.call(key, http.MethodPost, "/api/conversations", []byte(body))
	if err == nil && (status != http.StatusOK || !bytes.Contains(answer, []byte(`"success":true`))) {
		err = fmt.Errorf("%d %s", status, answer)
	}
	return err
}

// call makes a call and answers the body; an error when there was no answer at all.
func (p *program) call(key, method, path string, body []byte) (status int, answer []byte, err error) {
	req, err := http.NewRequest(method, p.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("X-API-Key", key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// must is call for what has to succeed.
func (p *program) must(t *testing.T, key, method, path string, body []byte) []byte {
	t.Helper()
	status, answer, err := p.call(key, method, path, body)
	kit.Require(t, err == nil && status == 200, "%s %s: %d %.300s %v", method, path, status, answer, err)
	return answer
}

func (p *program) raw(t *testing.T, key, session string) string {
	t.Helper()
	return string(p.must(t, key, http.MethodGet, "/api/sessions/"+session+"/raw", nil))
}

// kill kills the server.
func (p *program) kill(t *testing.T) {
	t.Helper()
	err := p.cmd.Process.Kill()
	kit.Require(t, err == nil || errors.Is(err, os.ErrProcessDone), "%v", err)
	_ = p.cmd.Wait() // killed
}

// TestKill kills the server again and again while four clients send: what was acknowledged is there.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.db")
	key := newKeyIn(t, path)
	const clients = 4
	var acknowledged [clients]int
	for round := range 5 {
		p := launch(t, path)
		enough := make(chan struct{}, clients*1000)
		var wg sync.WaitGroup
		for c := range clients {
			wg.Go(func() {
				for range 500 {
					if p.send(key, fmt.Sprint("s", c), acknowledged[c]) != nil {
						return // killed; the line is sent again in the next round
					}
					acknowledged[c]++
					enough <- struct{}{}
				}
			})
		}
		for range 20 + 13*round {
			<-enough
		}
		kit.Must(t, p.cmd.Process.Kill())
		wg.Wait()
		_ = p.cmd.Wait() // killed
	}
	p := launch(t, path)
	for c, n := range acknowledged {
		lines := strings.Split(strings.TrimSuffix(p.raw(t, key, fmt.Sprint("s", c)), "\n"), "\n")
		kit.Check(t, len(lines) >= n, "client %d: %d lines of %d acknowledged", c, len(lines), n)
		for i, l := range lines {
			kit.Check(t, strings.HasPrefix(l, fmt.Sprintf(`{"n":%d,`, i)) && len(l) >= 3000,
				"client %d: line %d is %.40q", c, i, l)
		}
	}
	p.kill(t)
}

func TestTerminate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no SIGTERM there")
	}
	p := launch(t, filepath.Join(t.TempDir(), "server.db"))
	res := kit.Try(http.Get(p.url + "/")).Must(t)
	res.Body.Close()
	kit.Check(t, res.StatusCode == http.StatusUnauthorized,
		"the viewer answers %d to somebody who is not logged in", res.StatusCode)
	kit.Must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	kit.Err(t, "after SIGTERM", nil)(p.cmd.Wait())
}

// TestStoppedWhileItOpens: a server that is stopped before it has opened its store ends well.
func TestStoppedWhileItOpens(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, words bytes.Buffer
	code := run(ctx, []string{"serve", "--listen", "127.0.0.1:0", "--store", "sqlite:" + filepath.Join(t.TempDir(), "server.db")}, &out, &words)
	kit.Check(t, code == 0, "exit %d, %s", code, words.String())
}

func TestPortTaken(t *testing.T) {
	ln := kit.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	defer ln.Close()
	var out, words bytes.Buffer
	code := run(t.Context(), []string{"serve", "--listen", ln.Addr().String(),
		"--store", "sqlite:" + filepath.Join(t.TempDir(), "server.db")}, &out, &words)
	kit.Check(t, code == exitFailed && strings.Contains(words.String(), "hint: choose another with --listen"),
		"exit %d, %s", code, words.String())
}

// TestStarting: health says why, everything else is refused for now, and the listener then serves another.
func TestStarting(t *testing.T) {
	ln := kit.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	defer ln.Close()
	s := &startingServer{Version: "v", Log: slog.New(slog.DiscardHandler)}
	stop := kit.Try(s.Run(ln)).Must(t)
	base := "http://" + ln.Addr().String()
	var said health
	if a, body := ask(t, base+"/base/healthz", ""); a.StatusCode != http.StatusServiceUnavailable || json.Unmarshal(body, &said) != nil ||
		said != (health{false, "v", "starting", first}) {
		t.Errorf("health: %d %s", a.StatusCode, body)
	}
	s.Say("the schema is updated")
	a, body := ask(t, base+"/api/conversations", `{"session_id":"s","entries":[]}`)
	kit.Check(t, a.StatusCode == http.StatusServiceUnavailable && a.Header.Get("Retry-After") == retryAfter &&
		a.Header.Get("Ccship-Protocol") == "1" && strings.Contains(string(body), "the schema is updated") &&
		!strings.Contains(string(body), "success"),
		"a request: %d %v %s", a.StatusCode, a.Header, body)
	kit.Must(t, stop())
	real := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})}
	defer real.Close()
	answer := make(chan int, 1)
	go func() { // comes before there is anybody to serve it
		a, _ := ask(t, base+"/", "")
		answer <- a.StatusCode
	}()
	go func() { _ = real.Serve(ln) }()
	kit.Equal(t, "the real server answers", <-answer, http.StatusNoContent)
}

func ask(t *testing.T, url, body string) (*http.Response, []byte) {
	t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	r := kit.Try(http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))).Must(t)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return &http.Response{}, nil
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	kit.Check(t, err == nil, "%v", err)
	return a, b
}

// writePair makes a self-signed certificate and its key, a while old, so that the next ones have another time.
func writePair(t *testing.T, cert, key string, serial int64) {
	t.Helper()
	private := kit.Try(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)).Must(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der := kit.Try(x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)).Must(t)
	secret := kit.Try(x509.MarshalPKCS8PrivateKey(private)).Must(t)
	writeAt(t, cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), serial)
	writeAt(t, key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), serial)
}

func writeAt(t *testing.T, name string, b []byte, serial int64) {
	t.Helper()
	kit.Must(t, os.WriteFile(name, b, 0o600))
	at := time.Unix(1_700_000_000+serial, 0)
	kit.Must(t, os.Chtimes(name, at, at))
}

// servedSerial makes a new connection and answers which certificate it was shown.
func servedSerial(t *testing.T, url string) int64 {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	res := kit.Try(client.Get(url + "/healthz")).Must(t)
	res.Body.Close()
	kit.Require(t, res.StatusCode == http.StatusOK, "status %d", res.StatusCode)
	return res.TLS.PeerCertificates[0].SerialNumber.Int64()
}

// TestTLS: a renewed certificate is served without a restart; files that do not fit leave the old one.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePair(t, cert, key, 1)
	p := launch(t, filepath.Join(dir, "server.db"), "--tls-cert", cert, "--tls-key", key)
	kit.Require(t, strings.HasPrefix(p.url, "https://"), "it listens on %s", p.url)
	kit.Equal(t, "certificate", servedSerial(t, p.url), 1)
	writePair(t, cert, key, 2)
	kit.Equal(t, "renewed: certificate", servedSerial(t, p.url), 2)
	writeAt(t, key, []byte("half written"), 3)
	kit.Equal(t, "half renewed: certificate", servedSerial(t, p.url), 2)
	writePair(t, cert, key, 4)
	kit.Equal(t, "whole again: certificate", servedSerial(t, p.url), 4)
	_, err := tls.Dial("tcp", strings.TrimPrefix(p.url, "https://"), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11})
	kit.Check(t, err != nil, "TLS 1.1 is spoken")
}
