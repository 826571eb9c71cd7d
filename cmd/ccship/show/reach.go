package show

import (
	"context"
	"path/filepath"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/sys"
)

// UpDir returns where `ccship up` keeps its own things.
func UpDir(c config.Config) string { return sys.UpDir(c.StateDir) }

// UpSocket returns where the daemon of `ccship up` listens.
func UpSocket(c config.Config) string {
	if c.OriginOf("socket") != config.FromDefault {
		return c.Socket
	}
	return filepath.Join(UpDir(c), "ccship.sock")
}

// Sockets returns the places where a daemon may listen; a socket that was named is the only one.
func Sockets(c config.Config) []string {
	if c.OriginOf("socket") != config.FromDefault {
		return []string{c.Socket}
	}
	return sys.Unnamed(c.Socket, c.StateDir)
}

// DaemonClient returns the client for commands that need a daemon.
func (a *App) DaemonClient(ctx context.Context) (*control.Client, error) {
	c, err := a.Config()
	if err != nil {
		return nil, err
	}
	client, _, err := control.Reach(ctx, Sockets(c))
	return client, err
}
