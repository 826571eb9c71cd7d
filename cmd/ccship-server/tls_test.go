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
