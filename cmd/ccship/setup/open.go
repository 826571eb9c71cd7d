package setup

import (
	"context"
	"fmt"
	"os"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
)

// OpenViewer prints a one-time link into the viewer of the server that is set, and on a terminal opens it in a browser.
func OpenViewer(ctx context.Context, a *show.App, c config.Config) error {
	link, err := loginLink(ctx, c)
	switch {
	case remote.Is(err, remote.CodeNoReading):
		return control.Failed(c.ServerURL+" has no viewer", "`ccship list` and `ccship show` read what is on disk")
	case err != nil:
		return err
	}
	if err := a.Print(link.URL + "\n"); err != nil {
		return err
	}
	a.Say("it logs in one browser, until %s", link.Until.Local().Format("15:04"))
	if _, terminal := term.Columns(a.Stdout); !terminal {
		return nil
	}
	if err := os.MkdirAll(c.StateDir, 0o700); err != nil {
		return fmt.Errorf("make state folder: %w", err)
	}
	return openBrowser(ctx, Home{Dir: c.StateDir}, link.URL)
}
