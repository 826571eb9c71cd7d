package setup

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
)

// sweepSoon is how far ahead the first sentences look for what Claude Code will delete.
const sweepSoon = 7 * 24 * time.Hour

// readKey reads a key from standard input.
func readKey() (string, error) {
	text, err := io.ReadAll(io.LimitReader(os.Stdin, 64<<10))
	if err != nil {
		return "", fmt.Errorf("read API key: %w", err)
	}
	return config.CheckAPIKey("standard input", string(text))
}

// saved returns what setup ends with: what is safe now, and what would have been lost soon.
func (s *setup) saved(c config.Config, status control.Status, r control.SyncResult) string {
	var b strings.Builder
	kept, err := config.Expiring(c.Roots, sweepSoon, time.Now())
	switch {
	case status.Files == nil || status.Files.Tracked == 0:
		fmt.Fprintf(&b, "no conversations yet in %s; the first will be delivered as it is written\n",
			strings.Join(c.Roots, ", "))
	case status.Files.Sessions == 1:
		fmt.Fprintf(&b, "the 1 session (%s) is on your server", amount.Size(status.Files.Bytes))
	default:
		fmt.Fprintf(&b, "all %s (%s) are on your server",
			amount.Counted(int64(status.Files.Sessions), "session", "sessions"), amount.Size(status.Files.Bytes))
	}
	if status.Files != nil && status.Files.Tracked > 0 {
		if err == nil && kept.Expiring > 0 {
			fmt.Fprintf(&b, "; Claude Code would have deleted %s of them within 7 days", amount.Count(int64(kept.Expiring)))
		}
		b.WriteString("\n")
	}
	b.WriteString(show.LeftOut(r))
	for i, other := range status.Servers {
		if i > 0 && other.Batches > 0 {
			fmt.Fprintf(&b, "  %s for the retired server %s\n",
				amount.Counted(other.Batches, "batch still waits", "batches still wait"), other.URL)
		}
	}
	b.WriteString("every new line follows as it is written; `ccship status` shows the progress\n")
	return b.String()
}

// tellHowToRun ends a setup without a service. A running daemon starts to use the server at once. Without one, it says
// what there is to save, and how.
func (s *setup) tellHowToRun(ctx context.Context, t *theService) error {
	if client, status, err := control.Reach(ctx, t.sockets()); err == nil && show.SamePath(status.Config, t.config.Path) {
		if _, err := client.Reload(ctx); err != nil {
			return err
		}
		return s.app.Tell(fmt.Sprintf("the running daemon (pid %d) delivers there from now on; "+
			"`ccship status` shows the progress\n", status.PID))
	}
	kept, err := config.Expiring(t.config.Roots, sweepSoon, time.Now())
	if err != nil {
		s.app.Say("not everything could be counted: %v", err)
	}
	if kept.Sessions > 0 {
		s.app.Say("%s (%s) can be saved; Claude Code deletes %s within 7 days",
			amount.Counted(int64(kept.Sessions), "session", "sessions"), amount.Size(kept.Bytes), noneOr(kept.Expiring))
	}
	how := "ccship run"
	if t.config.Path != "" && s.app.Flags.Changed("config") {
		how += " --config " + filepath.Clean(t.config.Path)
	}
	if s.manager {
		return s.app.Tell("ready; deliver with `" + how + "`, or as a service with `ccship service install`\n")
	}
	return s.app.Tell("ready; there is no service manager here, so start ccship yourself: `" + how +
		"` in a terminal that " +
		"stays open,\n  or `nohup " + how + " >/dev/null 2>&1 &`; in a container make it part of the start command\n")
}

func noneOr(n int) string {
	if n == 0 {
		return "none of them"
	}
	return amount.Count(int64(n)) + " of them"
}
