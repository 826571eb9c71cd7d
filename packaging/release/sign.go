package main

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// keyVariable holds the key that signs a release: Ed25519, PKCS #8 in PEM. `openssl genpkey -algorithm ed25519` makes
// one.
const keyVariable = "CCSHIP_RELEASE_KEY"

// signer signs files so that minisign and OpenSSL can verify them.
type signer struct {
	key ed25519.PrivateKey
}

// readSigner reads the key from the text of a variable; nil if there is none.
func readSigner(text string) (*signer, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil //nolint:nilnil // a release without a key is not signed
	}
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New(keyVariable + " is no PEM: make a key with openssl genpkey -algorithm ed25519")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", keyVariable, err)
	}
	own, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, errors.New(keyVariable + " is no Ed25519 key: make one with openssl genpkey -algorithm ed25519")
	}
	return &signer{own}, nil
}

func (s *signer) public() ed25519.PublicKey {
	return ed25519.PublicKey(s.key[ed25519.SeedSize:])
}

// named returns what minisign puts before a key or a signature: the algorithm and the key's id.
func (s *signer) named(b []byte) string {
	id := sha256.Sum256(s.public())
	return base64.StdEncoding.EncodeToString(append(append([]byte("Ed"), id[:8]...), b...))
}

// publicLine returns the public key as minisign -P takes it.
func (s *signer) publicLine() string { return s.named(s.public()) }

// publicPEM returns the public key as OpenSSL takes it, on one line without the armour.
func (s *signer) publicPEM() (string, error) {
	der, err := x509.MarshalPKIXPublicKey(s.public())
	if err != nil {
		return "", fmt.Errorf("write public key: %w", err)
	}
	return base64.StdEncoding.EncodeToString(der), nil
}

// sign returns the signature of a text, in minisign's format. The signature itself is plain Ed25519 of the text.
func (s *signer) sign(text []byte, comment string) string {
	signature := ed25519.Sign(s.key, text)
	global := ed25519.Sign(s.key, append(signature[:len(signature):len(signature)], comment...))
	return "untrusted comment: signature of ccship's release key\n" + s.named(signature) +
		"\ntrusted comment: " + comment + "\n" + base64.StdEncoding.EncodeToString(global) + "\n"
}

// signature signs the checksums, if there is a key.
func (r *release) signature(context.Context) error {
	if r.signer == nil {
		fmt.Fprintln(r.said, "not signed: "+keyVariable+" is not set")
		return nil
	}
	sums, err := os.ReadFile(filepath.Join(r.out, "checksums.txt"))
	if err != nil {
		return err
	}
	key := "untrusted comment: ccship's release key\n" + r.signer.publicLine() + "\n"
	for name, text := range map[string]string{
		"checksums.txt.minisig": r.signer.sign(sums, "ccship "+r.version),
		"ccship.pub":            key,
	} {
		if err := os.WriteFile(filepath.Join(r.out, name), []byte(text), 0o644); err != nil {
			return err
		}
		r.made(name)
	}
	return nil
}
