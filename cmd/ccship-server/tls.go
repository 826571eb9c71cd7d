package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificate is a key pair from two files, which are read again when they change: certificates are renewed while the
// server runs. Safe for concurrent use.
type certificate struct {
	cert, key string
	log       *slog.Logger

	mu     sync.Mutex
	pair   *tls.Certificate // guarded by mu, as is all below
	stamps [2]fileStamp
	warned bool
}

// fileStamp identifies a version of a file.
type fileStamp struct {
	size int64
	at   time.Time
}

// loadCertificate reads the pair for the first time.
func loadCertificate(cert, key string, log *slog.Logger) (*certificate, error) {
	c := &certificate{cert: cert, key: key, log: log}
	if err := c.refresh(); err != nil {
		return nil, err
	}
	return c, nil
}

// config serves with the pair as it is at each handshake.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			err := c.refresh()
			if err != nil && !c.warned {
				// Renewing writes one file after the other; the old pair serves until both fit.
				c.log.Warn("cannot reload the certificate; the old one stays in use", "error", err)
			}
			c.warned = err != nil
			return c.pair, nil
		},
	}
}

// refresh reads the pair if a file has changed. The caller holds mu, or is alone. On error the old pair stays.
func (c *certificate) refresh() error {
	var stamps [2]fileStamp
	for i, name := range []string{c.cert, c.key} {
		info, err := os.Stat(name)
		if err != nil {
			return fmt.Errorf("read certificate: %w", err)
		}
		stamps[i] = fileStamp{info.Size(), info.ModTime()}
	}
	if c.pair != nil && stamps == c.stamps {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("read certificate: %w", err)
	}
	if c.pair != nil {
		c.log.Info("certificate reloaded")
	}
	c.pair, c.stamps = &pair, stamps
	return nil
}
