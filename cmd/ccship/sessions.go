package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/ccship/ccship/cmd/ccship/setup"
	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/transcript"
)

// userUsage describes the flag that names whose session is meant.
const userUsage = "of this `user` of the server; needed when several have a session of that id"

// library is the user's sessions: those of the service, or of `ccship up` while only that runs.
func (a *app) library(ctx context.Context) (*library.Library, error) {
	c, err := a.running(ctx)
	if err != nil {
		return nil, err
	}
	return newLibrary(c)
}

// running is the configuration of the service, or of `ccship up` while only that runs.
func (a *app) running(ctx context.Context) (config.Config, error) {
	c, err := a.Config()
	if err != nil {
		return c, err
	}
	client, _, away := control.Reach(ctx, show.Sockets(c))
	if away != nil || c.OriginOf("socket") != config.FromDefault || client.Path() != show.UpSocket(c) {
		return c, nil //nolint:nilerr // without a daemon the configuration decides
	}
	home := setup.Home{Dir: show.UpDir(c)}
	address, err := os.ReadFile(home.File("listen"))
	if err != nil {
		return c, fmt.Errorf("read address of `ccship up`: %w", err)
	}
	return home.Config(c, strings.TrimSpace(string(address)))
}

// onServer is the library of a command that asks the server. It completes the session that the command names, if any.
func (a *app) onServer(ctx context.Context, session *string) (*library.Library, error) {
	l, err := a.library(ctx)
	if err != nil {
		return nil, err
	}
	if l.Server == nil {
		return nil, library.NoServer()
	}
	if *session == "" {
		return l, nil
	}
	found, err := l.Find(ctx, *session)
	if err != nil {
		return nil, err
	}
	*session = found.Session
	return l, nil
}

// newLibrary reads the sessions on disk and on the user's own server, as the daemon would see them; no daemon needs to
// run.
func newLibrary(c config.Config) (*library.Library, error) {
	self, err := sys.LoadIdentity(c.StateDir)
	if err != nil {
		return nil, err
	}
	prices, err := priceList(c)
	if err != nil {
		prices = &transcript.Prices{} // costs are not known; `ccship usage` says why
	}
	finder := project.NewFinder()
	finder.Home = c.Home()
	l := &library.Library{Roots: c.Roots, Machine: self.Name, Prices: prices, Repository: func(cwd string) string {
		policy, _ := finder.Find(cwd) // what cannot be read has no repository
		return policy.Top()
	}}
	if c.ServerURL == "" {
		return l, nil
	}
	l.Server, err = setup.Reader(c)
	return l, err
}
