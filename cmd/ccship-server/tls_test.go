package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// writePair makes a self-signed certificate for 127.0.0.1 and its key, in files that are a while old, so that the next
// ones have another time whatever the file system's clock.
func writePair(t *testing.T, cert, key string, serial int64) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	kit.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	kit.Must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	kit.Must(t, err)
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
	res, err := client.Get(url + "/healthz")
	kit.Must(t, err)
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("status %d", res.StatusCode)
	}
	return res.TLS.PeerCertificates[0].SerialNumber.Int64()
}

// TestTLS: a renewed certificate is served without a restart; files that do not fit leave the old one.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePair(t, cert, key, 1)
	p := launch(t, filepath.Join(dir, "server.db"), "--tls-cert", cert, "--tls-key", key)
	if !strings.HasPrefix(p.url, "https://") {
		t.Fatalf("it listens on %s", p.url)
	}
	if got := servedSerial(t, p.url); got != 1 {
		t.Errorf("certificate %d", got)
	}
	writePair(t, cert, key, 2)
	if got := servedSerial(t, p.url); got != 2 {
		t.Errorf("renewed: certificate %d", got)
	}
	writeAt(t, key, []byte("half written"), 3)
	if got := servedSerial(t, p.url); got != 2 {
		t.Errorf("half renewed: certificate %d", got)
	}
	writePair(t, cert, key, 4)
	if got := servedSerial(t, p.url); got != 4 {
		t.Errorf("whole again: certificate %d", got)
	}
	if _, err := tls.Dial("tcp", strings.TrimPrefix(p.url, "https://"), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
}
