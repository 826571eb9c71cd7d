package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/internal/service"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/api"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/limit"
	"github.com/ccship/ccship/server/store"
	"github.com/ccship/ccship/server/web"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/transcript"
)

func (p *cli) newServe() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Receive conversations and show them, until stopped",
		Args:  wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			f.store = p.store
			return serve(c, f)
		},
	}
	f.add(c)
	return c
}

// garbage is how much may gather in memory: that much is alive while an import comes in, more with a thousand daemons.
// Up to there it may be twice what is alive, or a small import would have its memory collected too often.
const (
	garbage        = 48 << 20
	garbagePercent = 200
)

func serve(c *cobra.Command, f serveFlags) (err error) {
	sys.BoundHeap(garbage, garbagePercent)
	set, err := f.check(c)
	if err != nil {
		return err
	}
	ln, err := listen(c, f.listen)
	if err != nil {
		return err
	}
	st, err := openServing(c.Context(), f, set, ln)
	if c.Context().Err() != nil && errors.Is(err, context.Canceled) {
		return ln.Close() // stopped before it had started
	}
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	s, changes, err := assemble(f, set, st)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	scheme := "http"
	if set.tls != nil {
		scheme = "https"
	}
	if ln.Addr().Network() == "unix" {
		scheme = "unix"
	}
	if err := servedAt(ln, f).keep(f.store); err != nil {
		set.log.Warn("cannot write the address down, so `link` needs --public-url", "err", err)
	}
	term.Printf(c.ErrOrStderr(), "listening on %s://%s%s\n", scheme, ln.Addr(), f.base)
	if noted, ok := st.(interface{ Notes() []string }); ok {
		for _, note := range noted.Notes() {
			set.log.Warn(note)
		}
	}
	defer set.manager.Ready("listening on " + ln.Addr().String())()
	deriver := &derive.Deriver{Store: st, Log: set.log}
	parts := upkeep{st, set.log}.chores(f.retentionEvery, set.coldAfter)
	return together(c.Context(), append(parts, changes.Run, deriver.Run,
		func(ctx context.Context) error { return s.Run(ctx, ln) })...)
}

// assemble puts the server together.
func assemble(f serveFlags, set settings, st store.Store) (*api.Server, *server.Hub, error) {
	access := auth.New(st, set.log)
	access.Proxies = set.proxies
	if f.endLogins {
		access.Run = rand.Text()
	}
	changes := server.NewHub(st)
	bounded := limit.NewFair(st)
	viewer, err := web.New(bounded, access)
	if err != nil {
		return nil, nil, err
	}
	viewer.Base, viewer.Hub, viewer.Prices, viewer.Log = f.base, changes, set.prices, set.log
	rates := limit.NewRates(f.userRate)
	viewer.Quota, viewer.Rates = set.quota, rates
	s := api.New(bounded, access, changes)
	s.Version, s.Log, s.Viewer, s.Export = version, set.log, viewer.Handler(), viewer.Export
	s.Base, s.PublicURL, s.Hosts, s.Prices, s.TLS = f.base, f.publicURL, set.hosts, set.prices, set.tls
	s.Rates, s.Quota = rates, set.quota
	s.MaxIntake, s.MaxQueue = set.intake, f.ingestQueue
	s.MaxBody, s.MaxRequests, s.MetricsOpen = set.maxBody, f.maxRequests, f.metricsOpen
	s.MaxConns = min(f.maxConnections, sys.Connections())
	return s, changes, nil
}

// together runs all parts until ctx is done or one of them fails, which ends the others.
func together(ctx context.Context, parts ...func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, part := range parts {
		wg.Go(func() {
			if errs[i] = part(ctx); errs[i] != nil {
				stop()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func listen(c *cobra.Command, address string) (net.Listener, error) {
	if at := socketPath(address); at != "" {
		return listenSocket(c.Context(), at)
	}
	var config net.ListenConfig
	ln, err := config.Listen(c.Context(), "tcp", address)
	var wrong *net.AddrError
	switch {
	case err == nil:
		return ln, nil
	case errors.As(err, &wrong):
		return nil, usage(c, fmt.Errorf("bad --listen %q: want ADDRESS:PORT or unix:///PATH", address))
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, hinted{fmt.Errorf("listen on %s: the port is in use", address),
			"choose another with --listen 127.0.0.1:PORT, or port 0 for any (macOS AirPlay holds 5000)"}
	}
	return nil, hinted{fmt.Errorf("listen on %s: %w", address, err), "choose another with --listen ADDRESS:PORT"}
}

// serveFlags are serve's options as typed.
type serveFlags struct {
	listen, store, maxBody      string
	ingestMemory, replica       string
	blocks, coldAfter           string
	retentionEvery              time.Duration
	base, publicURL, proxies    string
	tlsCert, tlsKey, prices     string
	logFormat, logLevel         string
	maxRequests, maxConnections int
	ingestQueue                 int
	userRate                    int
	quotaBytes                  string
	quotaSessions               int64
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
		"comma-separated addresses and networks of proxies whose X-Forwarded-For and -Proto are trusted")
	flags.StringVar(&f.prices, "prices", "", "file of token prices, instead of the built-in list")
	flags.StringVar(&f.maxBody, "max-body", "128MiB", "largest request, decompressed")
	flags.StringVar(&f.replica, "replica", os.Getenv("CCSHIP_SERVER_REPLICA"),
		"a standby, as postgres://…, that answers searches, sums and lists; also $CCSHIP_SERVER_REPLICA")
	flags.StringVar(&f.blocks, "blocks", "",
		"`URL` of cold storage, s3://bucket/prefix?endpoint=https://host or file:///folder; "+
			"the store remembers it")
	flags.StringVar(&f.coldAfter, "cold-after", "",
		"move sessions that got no lines for this `time`, and files of that age, to --blocks, for example 30d")
	flags.DurationVar(&f.retentionEvery, "retention-every", 24*time.Hour,
		"how often rules of retention are applied; 0: only by \"retention --yes\"")
	flags.StringVar(&f.ingestMemory, "ingest-memory", "128MiB",
		"memory for lines that are being stored")
	flags.IntVar(&f.ingestQueue, "ingest-queue", limit.DefaultQueue,
		"requests with lines that wait to be read; more come back later")
	flags.IntVar(&f.maxRequests, "max-requests", api.DefaultMaxRequests, "requests handled at once; more wait")
	flags.IntVar(&f.userRate, "user-requests-per-minute", 0,
		"requests of one user a minute; more get 429, and are sent again later; 0: no limit")
	flags.StringVar(&f.quotaBytes, "quota-bytes", "0",
		"bytes stored of one user, for example 10GiB; more gets 507, and is sent again later; 0: no limit")
	flags.Int64Var(&f.quotaSessions, "quota-sessions", 0,
		"sessions stored of one user, without agents; 0: no limit")
	flags.IntVar(&f.maxConnections, "max-connections", api.DefaultMaxConns,
		"open connections; above this, those that are idle longest are closed")
	flags.BoolVar(&f.endLogins, "end-logins", false, "log every browser out when the server stops")
	flags.BoolVar(&f.metricsOpen, "metrics-open", false, "show /metrics without a key (loopback addresses only)")
	flags.StringVar(&f.logFormat, "log-format", "text", "text or json")
	flags.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error; debug logs each request")
}

// settings are serve's options as read from the flags.
type settings struct {
	maxBody   int64
	intake    int64
	coldAfter time.Duration
	quota     server.Quota
	proxies   []netip.Prefix
	hosts     []string
	prices    *transcript.Prices
	tls       *tls.Config
	log       *slog.Logger
	manager   *service.Notifier
}

// check reads the flags. Its errors are usage errors.
func (f *serveFlags) check(c *cobra.Command) (settings, error) {
	var s settings
	steps := []func(*settings) error{
		f.checkLog(c.ErrOrStderr()), f.checkLimits, f.checkAddress, f.checkStore, f.checkCold, f.checkFiles,
	}
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
		s.manager = service.NewNotifier(os.Getenv, s.log)
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
	if s.intake, err = amount.ParseSize(f.ingestMemory); err != nil || s.intake < 1<<20 {
		return fmt.Errorf("bad --ingest-memory %q: want a size such as 128MiB, 1MiB or more", f.ingestMemory)
	}
	if f.ingestQueue < 1 {
		return fmt.Errorf("bad --ingest-queue %d: want 1 or more", f.ingestQueue)
	}
	if f.maxRequests < 1 {
		return fmt.Errorf("bad --max-requests %d: want 1 or more", f.maxRequests)
	}
	if f.userRate < 0 {
		return fmt.Errorf("bad --user-requests-per-minute %d: want 0 or more", f.userRate)
	}
	if s.quota.Bytes, err = amount.ParseSize(f.quotaBytes); err != nil || s.quota.Bytes < 0 {
		return fmt.Errorf("bad --quota-bytes %q: want a size such as 10GiB, or 0", f.quotaBytes)
	}
	if s.quota.Sessions = f.quotaSessions; f.quotaSessions < 0 {
		return fmt.Errorf("bad --quota-sessions %d: want 0 or more", f.quotaSessions)
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

// checkStore refuses a URL that names no store before anything listens.
func (f *serveFlags) checkStore(*settings) error {
	if err := store.Check(f.store); err != nil {
		return explainOpen(err)
	}
	return nil
}

// checkCold reads what moves to another place, and when.
func (f *serveFlags) checkCold(s *settings) (err error) {
	if f.blocks != "" {
		if err := store.CheckBlocks(f.blocks); err != nil {
			return err
		}
	}
	if f.coldAfter == "" {
		return nil
	}
	if s.coldAfter, err = amount.ParseAge(f.coldAfter); err != nil {
		return fmt.Errorf("bad --cold-after: %w", err)
	}
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
	if s.prices, err = transcript.ReadPrices(file); err != nil {
		return usageError{hinted{fmt.Errorf("bad --prices %s: %w", f.prices, err),
			"transcript/prices.json in the source is an example"}}
	}
	return nil
}
