package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestSignature reads key and signature by the description of minisign's format, and has minisign verify them. What
// OpenSSL makes of them, TestInstallScript shows.
func TestSignature(t *testing.T) {
	public, key, err := ed25519.GenerateKey(nil)
	kit.Must(t, err)
	s := &signer{key}
	text := []byte("sum  name\n")
	lines := strings.Split(s.sign(text, "ccship v1"), "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[0], "untrusted comment: ") || lines[2] != "trusted comment: ccship v1" || lines[4] != "" {
		t.Fatalf("lines %q", lines)
	}
	signature := kit.Try(base64.StdEncoding.DecodeString(lines[1])).Must(t)
	global := kit.Try(base64.StdEncoding.DecodeString(lines[3])).Must(t)
	named := kit.Try(base64.StdEncoding.DecodeString(s.publicLine())).Must(t)
	if len(signature) != 2+8+64 || len(named) != 2+8+32 || !bytes.Equal(signature[:10], named[:10]) || string(named[:2]) != "Ed" || !bytes.Equal(named[10:], public) {
		t.Errorf("key %x, signature %x", named, signature)
	}
	if !ed25519.Verify(public, text, signature[10:]) || !ed25519.Verify(public, append(signature[10:], "ccship v1"...), global) {
		t.Error("a signature is wrong")
	}
	if _, err := exec.LookPath("minisign"); err != nil {
		t.Log("minisign is missing: it has not verified the signature")
		return
	}
	dir := t.TempDir()
	kit.Must(t, os.WriteFile(filepath.Join(dir, "f"), text, 0o644))
	kit.Must(t, os.WriteFile(filepath.Join(dir, "f.minisig"), []byte(strings.Join(lines, "\n")), 0o644))
	kit.Err(t, "minisign",
		nil)(exec.Command("minisign", "-Vm", filepath.Join(dir, "f"), "-P", s.publicLine()).CombinedOutput())
}

// TestReleaseKey: no key is no error, and what is no key is one that says how to make one.
func TestReleaseKey(t *testing.T) {
	if s, err := readSigner(" \n"); s != nil || err != nil {
		t.Errorf("no key: %v %v", s, err)
	}
	_, key, err := ed25519.GenerateKey(nil)
	kit.Must(t, err)
	der := kit.Try(x509.MarshalPKCS8PrivateKey(key)).Must(t)
	s, err := readSigner(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	kit.Check(t, err == nil && s.key.Equal(key), "%v %v", s, err)
	for _, text := range []string{"key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		_, err := readSigner(text)
		kit.Check(t, err != nil && strings.Contains(err.Error(), keyVariable), "%q: %v", text, err)
	}
	var said strings.Builder
	if err := (&release{said: &said}).signature(t.Context()); err != nil || said.String() != "not signed: CCSHIP_RELEASE_KEY is not set\n" {
		t.Errorf("%q %v", said.String(), err)
	}
}
