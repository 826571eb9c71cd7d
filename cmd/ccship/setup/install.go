package setup

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/service"
)

func (a verbs) installCommand(w *which) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install the daemon as a service that starts automatically, and start it",
		Long: "Install the daemon as a service of this user (systemd, launchd) or of the system, and start it. " +
			"CCSHIP_* variables, flags and CLAUDE_CONFIG_DIR are written into the configuration file, since a " +
			"service does not see this shell. Installing again replaces an older ccship by a newer one.",
		Args: cobra.NoArgs,
		RunE: show.Interruptible(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			t, err := a.service(*w)
			if err != nil {
				return err
			}
			_, status, err := a.install(ctx, t, true)
			if err != nil {
				return err
			}
			err = a.Print(fmt.Sprintf("ccship is installed and running (pid %d); it starts automatically from now on\n",
				status.PID))
			if err != nil {
				return err
			}
			if t.config.ServerURL == "" {
				a.Say("no server is set yet, so nothing is sent: run `ccship setup`")
			}
			a.warnLinger(ctx, t)
			return nil
		}),
	}
	return cmd
}

// install makes the service, and with start waits until its daemon answers.
func (a verbs) install(ctx context.Context, t *theService, start bool) (*control.Client, control.Status, error) {
	var none control.Status
	before, err := a.installable(ctx, t)
	if err != nil {
		return nil, none, err
	}
	wrote, err := a.writeUnwritten(t)
	if err != nil {
		return nil, none, err
	}
	if t.flags == "" { // a folder that the unit opens for writing has to be there; another user's is not ours to make
		if err := os.MkdirAll(t.config.StateDir, 0o700); err != nil {
			return nil, none, fmt.Errorf("make state folder: %w", err)
		}
	}
	out, err := t.Install(ctx, start)
	if err != nil {
		return nil, none, err
	}
	switch {
	case out.Packaged && (out.Written || !before.Enabled):
		a.Say("using the unit of the package: %s", out.UnitPath)
	case out.Written && before.UnitPath == out.UnitPath && out.UnitPath != "":
		a.Say("replaced %s", out.UnitPath)
	case out.Written && out.UnitPath != "":
		a.Say("wrote %s", out.UnitPath)
	}
	if !start {
		return nil, none, nil
	}
	if wrote && !out.Started { // it runs with what the file said before
		if err := t.Restart(ctx); err != nil {
			return nil, none, err
		}
	}
	return t.answered(ctx)
}

// installable finds what would keep the service from running, before anything is changed.
func (a verbs) installable(ctx context.Context, t *theService) (service.Status, error) {
	st, err := t.Status(ctx)
	if err != nil {
		return st, err
	}
	if st.Manager == service.None {
		_, err := t.Install(ctx, false) // says why, and does nothing else
		return st, err
	}
	if _, err := t.config.APIKey(); err != nil {
		return st, err
	}
	return st, t.foreign(ctx, st)
}

// writeUnwritten puts what a service would not know into its configuration file, and says whether there was anything.
func (a verbs) writeUnwritten(t *theService) (bool, error) {
	values, err := t.config.Unwritten(t.env)
	if err != nil || len(values) == 0 {
		return false, err
	}
	if t.flags != "" {
		flag := "--" + strings.ReplaceAll(values[0].Name, "_", "-")
		return false, control.Usage(flag+" cannot be saved for another user's service",
			"run `ccship config "+values[0].Name+" …` as that user")
	}
	if err := config.WriteValues(t.config.Path, values); err != nil {
		return false, err
	}
	for _, v := range values {
		why := "came from " + v.Source
		if v.Source == "" {
			why = "depends on this shell's environment"
		}
		a.Say("wrote %s into %s: it %s, which a service does not see", v.TOML(), t.config.Path, why)
	}
	return true, nil
}

// warnLinger says what has to be done so that the service runs while nobody is logged in.
func (a verbs) warnLinger(ctx context.Context, t *theService) {
	if st, err := t.Status(ctx); err == nil && st.LingerHint() != "" {
		a.Say("%s", st.LingerHint())
	}
}
