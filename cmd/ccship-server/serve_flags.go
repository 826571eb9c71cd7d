package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/daemon/amount"
	"github.com/ccship/ccship/server/api"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/web/page"
)

// serveFlags are serve's options as typed.
type serveFlags struct {
	listen, store, maxBody      string
	base, publicURL, proxies    string
	tlsCert, tlsKey, prices     string
	logFormat, logLevel         string
	maxRequests, maxConnections int
	userRate                    int
	metricsOpen, endLogins      bool
}

func (f *serveFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:5000",
		"address and port; port 0 chooses a free one; or a Unix socket, as unix:///PATH")
	flags.StringVar(&f.tlsCert, "tls-cert", "", "PEM file of the certificate chain; reloaded when it changes")
	flags.StringVar(&f.tlsKey, "tls-key", "", "PEM file of its private key")
	flags.StringVar(&f.base, "base-path", "", "path prefix of all addresses, for example /ccship")
	flags.StringVar(&f.publicURL, "public-url", "",
		"address at which browsers reach the server; requests for other host names are refused")
	flags.StringVar(&f.proxies, "trusted-proxies", "",
		"proxies whose X-Forwarded-For and -Proto are trusted: addresses and networks, separated by commas")
	flags.StringVar(&f.prices, "prices", "", "file of token prices, instead of the built-in list")
	flags.StringVar(&f.maxBody, "max-body", "128MiB", "largest request, decompressed")
	flags.IntVar(&f.maxRequests, "max-requests", api.DefaultMaxRequests, "requests handled at once; more wait")
	flags.IntVar(&f.userRate, "user-requests-per-minute", 0,
		"requests of one user a minute; more are refused with 429, and sent again later; 0 sets no limit")
	flags.IntVar(&f.maxConnections, "max-connections", api.DefaultMaxConns,
		"open connections; above this, those that are idle longest are closed")
	flags.BoolVar(&f.endLogins, "end-logins", false, "log every browser out when the server stops")
	flags.BoolVar(&f.metricsOpen, "metrics-open", false, "show /metrics without a key (loopback addresses only)")
	flags.StringVar(&f.logFormat, "log-format", "text", "text or json")
	flags.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error; debug logs each request")
}

// settings are serve's options as read from the flags.
type settings struct {
	maxBody int64
	proxies []netip.Prefix
	hosts   []string
	prices  *derive.Prices
	tls     *tls.Config
	log     *slog.Logger
}

// check reads the flags. Its errors are usage errors.
func (f *serveFlags) check(c *cobra.Command) (settings, error) {
	var s settings
	steps := []func(*settings) error{f.checkLog(c.ErrOrStderr()), f.checkLimits, f.checkAddress, f.checkFiles}
	for _, step := range steps {
		if err := step(&s); err != nil {
			if _, ok := errors.AsType[usageError](err); ok {
				return s, err
			}
			return s, usage(c, err)
		}
	}
	return s, nil
}

func (f *serveFlags) checkLog(w io.Writer) func(*settings) error {
	return func(s *settings) error {
		var level slog.Level
		if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
			return fmt.Errorf("bad --log-level %q: want debug, info, warn or error", f.logLevel)
		}
		options := &slog.HandlerOptions{Level: level}
		switch f.logFormat {
		case "text":
			s.log = slog.New(slog.NewTextHandler(w, options))
		case "json":
			s.log = slog.New(slog.NewJSONHandler(w, options))
		default:
			return fmt.Errorf("bad --log-format %q: want text or json", f.logFormat)
		}
		return nil
	}
}

func (f *serveFlags) checkLimits(s *settings) (err error) {
	if s.maxBody, err = amount.ParseSize(f.maxBody); err != nil {
		return fmt.Errorf("bad --max-body: %w", err)
	}
	if s.maxBody < 1 {
		return fmt.Errorf("bad --max-body %s: want 1 byte or more", f.maxBody)
	}
	if f.maxRequests < 1 {
		return fmt.Errorf("bad --max-requests %d: want 1 or more", f.maxRequests)
	}
	if f.userRate < 0 {
		return fmt.Errorf("bad --user-requests-per-minute %d: want 0 or more", f.userRate)
	}
	if f.maxConnections < 1 {
		return fmt.Errorf("bad --max-connections %d: want 1 or more", f.maxConnections)
	}
	if s.proxies, err = auth.ParseProxies(f.proxies); err != nil {
		return fmt.Errorf("bad --trusted-proxies: %w", err)
	}
	return nil
}

func (f *serveFlags) checkAddress(s *settings) error {
	if socketPath(f.listen) != "" && (f.tlsCert != "" || f.base != "") {
		return fmt.Errorf("bad --listen %s: a Unix socket has neither TLS nor a base path", f.listen)
	}
	if f.metricsOpen && socketPath(f.listen) == "" && !page.IsLoopback(f.listen) {
		return usageError{hinted{fmt.Errorf("--metrics-open would show metrics to anyone who reaches %s", f.listen),
			"listen on 127.0.0.1, or omit it and send a key as X-API-Key"}}
	}
	f.base = strings.TrimRight(f.base, "/")
	if f.base != "" && (f.base[0] != '/' || strings.ContainsAny(f.base, "?#%\\ \"'<>") ||
		strings.Contains(f.base, "//")) {
		return fmt.Errorf("bad --base-path %q: want a path such as /ccship", f.base)
	}
	if f.publicURL == "" {
		return nil
	}
	u, err := parsePublicURL(f.publicURL)
	if err != nil {
		return fmt.Errorf("bad --public-url: %w", err)
	}
	if path := strings.TrimRight(u.Path, "/"); path != f.base {
		return fmt.Errorf("bad --public-url %q: its path differs from --base-path %q", f.publicURL, f.base)
	}
	s.hosts = []string{u.Hostname()}
	return nil
}

func (f *serveFlags) checkFiles(s *settings) error {
	if (f.tlsCert == "") != (f.tlsKey == "") {
		return errors.New("--tls-cert and --tls-key must be given together")
	}
	if f.tlsCert != "" {
		pair, err := loadCertificate(f.tlsCert, f.tlsKey, s.log)
		if err != nil {
			return usageError{hinted{err, "both files are PEM; the certificate comes first, then its issuers"}}
		}
		s.tls = pair.config()
	}
	if f.prices == "" {
		return nil
	}
	file, err := os.Open(f.prices)
	if err != nil {
		return fmt.Errorf("bad --prices: %w", err)
	}
	defer file.Close()
	if s.prices, err = derive.ReadPrices(file); err != nil {
		return usageError{hinted{fmt.Errorf("bad --prices %s: %w", f.prices, err),
			"server/derive/prices.json in the source is an example"}}
	}
	return nil
}
