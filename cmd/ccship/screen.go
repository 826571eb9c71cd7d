package main

import (
	"context"
	"os"

	"github.com/ccship/ccship/cmd/ccship/screen"
	"github.com/ccship/ccship/cmd/ccship/setup"
	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
)

// screen shows the screen, and then becomes Claude Code with the session that was chosen, if one was.
func (a *app) screen(ctx context.Context) error {
	chosen, err := screen.Open(ctx, func(ctx context.Context) (screen.Desk, error) {
		l, err := a.library(ctx)
		if err != nil {
			return screen.Desk{}, err
		}
		folder, _ := os.Getwd() // of a folder that is gone there are no sessions
		return screen.Desk{Library: l, Folder: folder, Project: l.ProjectOf(folder), Notice: a.notice, Browse: browse}, nil
	}, term.Colours(a.Stdout), os.Stdin, a.Stdout)
	if err != nil || chosen.Session == "" {
		return err
	}
	if chosen.Brought != nil {
		for _, line := range show.Resumed(*chosen.Brought) {
			a.Say("%s", line)
		}
	}
	return startClaude(chosen.Folder, chosen.Session)
}

// browse shows an address of the viewer in a browser. Without a desktop the person opens it.
func browse(ctx context.Context, address string) (string, error) {
	switch ok, err := setup.Browse(ctx, address); {
	case err != nil:
		return "", err
	case !ok:
		return "open " + address, nil
	}
	return "opened in the browser", nil
}

// notice returns what the daemon wants the user to do.
func (a *app) notice(ctx context.Context) string {
	c, err := a.Config()
	if err != nil {
		return ""
	}
	_, status, err := control.Reach(ctx, show.Sockets(c))
	switch {
	case err != nil:
		return "the daemon does not run: what is said is not delivered; `ccship up` starts it"
	case status.Pause != nil:
		return "sending is paused; `ccship unpause` goes on"
	case len(status.Advice) > 0:
		return status.Advice[0].Text
	}
	return ""
}
