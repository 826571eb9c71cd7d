package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web"
)

type serveFlags struct {
	listen, store, maxBody string
	maxRequests            int
	openViewer             bool
}

func newServe() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Take conversations and show them, until stopped",
		Args:  wrapArgs(cobra.NoArgs),
		RunE:  func(c *cobra.Command, _ []string) error { return serve(c, f) },
	}
	flags := c.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:5000", "address and port; port 0 takes a free one")
	flags.StringVar(&f.maxBody, "max-body", "128MiB", "largest request, decompressed")
	flags.IntVar(&f.maxRequests, "max-requests", server.DefaultMaxRequests, "requests worked on at once; more wait")
	flags.BoolVar(&f.openViewer, "open-viewer", false, "show the pages without a login (loopback addresses only)")
	storeFlag(c, &f.store)
	return c
}

func serve(c *cobra.Command, f serveFlags) (err error) {
	maxBody, err := parseSize(f.maxBody)
	if err != nil {
		return usage(c, fmt.Errorf("bad --max-body: %w", err))
	}
	if f.maxRequests < 1 {
		return usage(c, fmt.Errorf("bad --max-requests %d: want 1 or more", f.maxRequests))
	}
	if f.openViewer && !web.IsLoopback(f.listen) {
		return usageError{hinted{fmt.Errorf("--open-viewer would show everything to whoever reaches %s", f.listen),
			"listen on 127.0.0.1, or leave --open-viewer out and log in with a key"}}
	}
	st, err := openStore(c.Context(), f.store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	ln, err := listen(c, f.listen)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(c.ErrOrStderr(), nil))
	keys := server.NewKeys(st, log)
	viewer, err := web.New(st, keys)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	viewer.Open, viewer.Log = f.openViewer, log
	s := server.New(st, keys)
	s.Version, s.Log, s.Viewer = version, log, viewer.Handler()
	s.MaxBody, s.MaxRequests = maxBody, f.maxRequests
	fmt.Fprintf(c.ErrOrStderr(), "listening on http://%s\n", ln.Addr())
	return s.Run(c.Context(), ln)
}

func listen(c *cobra.Command, address string) (net.Listener, error) {
	var config net.ListenConfig
	ln, err := config.Listen(c.Context(), "tcp", address)
	var wrong *net.AddrError
	switch {
	case err == nil:
		return ln, nil
	case errors.As(err, &wrong):
		return nil, usage(c, fmt.Errorf("bad --listen %q: want ADDRESS:PORT", address))
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, hinted{fmt.Errorf("listen on %s: the port is taken", address),
			"choose another with --listen 127.0.0.1:PORT, or port 0 for any (macOS AirPlay holds 5000)"}
	}
	return nil, hinted{fmt.Errorf("listen on %s: %w", address, err), "choose another with --listen ADDRESS:PORT"}
}
