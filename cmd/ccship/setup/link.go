package setup

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/protocol"
)

// tryLinkTime is how long the server may take to make a link.
const tryLinkTime = 30 * time.Second

// loginLink asks the server of `ccship up` for a one-time link into its pages.
func loginLink(ctx context.Context, home Home, server string) (remote.LoginLink, error) {
	base, err := url.Parse(server)
	if err != nil {
		return remote.LoginLink{}, fmt.Errorf("read address of the server: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, tryLinkTime)
	defer cancel()
	if err := protocol.AskSameHost(ctx, server); err != nil { // before it is shown the key
		return remote.LoginLink{}, err
	}
	c := remote.New(base, server, home.key, "ccship")
	defer c.HTTP.CloseIdleConnections()
	return c.LoginLink(ctx)
}

// awaitIndex waits until the server shows what it has.
func (u *up) awaitIndex(ctx context.Context) {
	base, err := url.Parse(u.config.ServerURL)
	if err != nil {
		return
	}
	c := remote.New(base, u.config.ServerURL, u.home.key, "ccship")
	defer c.HTTP.CloseIdleConnections()
	ask := func(ctx context.Context) (left, all int64, err error) { return remote.Indexing(ctx, c) }
	if percent, ok := u.app.AwaitIndex(ctx, ask); ok && percent < 100 {
		u.app.Say("the server is still indexing (%d %%); lists and search show the rest a little later", percent)
	}
}

// key reads the key that the daemon shows.
func (h Home) key() (string, error) {
	text, err := os.ReadFile(h.File("api_key"))
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(text)), nil
}
