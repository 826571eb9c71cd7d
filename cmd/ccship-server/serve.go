package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/api"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/limit"
	"github.com/ccship/ccship/server/store"
	"github.com/ccship/ccship/server/web"
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
	s.MaxBody, s.MaxRequests, s.MaxConns, s.MetricsOpen = set.maxBody, f.maxRequests, f.maxConnections, f.metricsOpen
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
