package main

import (
	"context"
	"errors"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
)

// takeOver has a running daemon read a configuration file that was just written, and says when the change of a key is
// in force.
func (a *app) takeOver(ctx context.Context, path, key string) error {
	o, _ := config.LookupOption(key)
	client, err := a.DaemonClient(ctx)
	if errors.Is(err, control.ErrNotRunning) {
		a.Say("it takes effect when the daemon is started")
		return nil
	}
	if err != nil {
		return err
	}
	result, err := client.Reload(ctx)
	switch {
	case err != nil:
		return err
	case !show.SamePath(result.Config, path):
		a.Say("the running daemon reads %s: it does not see the change", result.Config)
	case !o.Live:
		a.Say("restart needed: the running daemon goes on with the value it has")
	default:
		a.Say("it takes effect at once")
	}
	return nil
}
