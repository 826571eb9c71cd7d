package setup

import (
	"context"
	"time"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
)

// linkTime is how long a server may take to make a link.
const linkTime = 30 * time.Second

// Reader returns the reading API of the server that is set.
func Reader(c config.Config) (*remote.Client, error) {
	base, name, err := outbox.NormalizeURL(c.ServerURL)
	if err != nil {
		return nil, err
	}
	return remote.New(base, name, c.APIKey, "ccship/"+c.Version), nil
}

// loginLink asks the server that is set for a one-time link into its pages.
func loginLink(ctx context.Context, c config.Config) (remote.LoginLink, error) {
	server, err := Reader(c)
	if err != nil {
		return remote.LoginLink{}, err
	}
	defer server.HTTP.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, linkTime)
	defer cancel()
	return server.LoginLink(ctx)
}

// ownLink is loginLink for the server of `ccship up`. Every user of this machine can listen on its port: it proves that
// it runs for this one before it is shown the key.
func ownLink(ctx context.Context, c config.Config) (remote.LoginLink, error) {
	asking, cancel := context.WithTimeout(ctx, linkTime)
	defer cancel()
	if err := protocol.AskSameHost(asking, c.ServerURL); err != nil {
		return remote.LoginLink{}, err
	}
	return loginLink(ctx, c)
}

// awaitIndex waits until the server that is set shows what it has, so that the next command finds it.
func awaitIndex(ctx context.Context, a *show.App, c config.Config) {
	server, err := Reader(c)
	if err != nil {
		return
	}
	defer server.HTTP.CloseIdleConnections()
	ask := func(ctx context.Context) (left, all int64, err error) { return remote.Indexing(ctx, server) }
	if percent, ok := a.AwaitIndex(ctx, ask); ok && percent < 100 {
		a.Say("the server is still indexing (%d %%); lists and search show the rest a little later", percent)
	}
}
