package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/internal/service"
	"github.com/ccship/ccship/internal/sys"
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

func (a verbs) uninstallCommand(w *which) *cobra.Command {
	var purge, yes bool
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Stop the service and remove everything that install created",
		Long: "Stop the service and remove everything that install created. Configuration, key and state stay. " +
			"--purge removes the state as well; a later install then delivers every transcript again.",
		Args: cobra.NoArgs,
		RunE: show.Interruptible(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			t, err := a.service(*w)
			if err != nil {
				return err
			}
			if purge && !yes {
				if err := a.confirmPurge(ctx, t.config.StateDir); err != nil {
					return err
				}
			}
			return a.uninstall(ctx, t, purge)
		}),
	}
	cmd.Flags().BoolVar(&purge, "purge", false,
		"remove cursors and outbox too; lines that are not delivered yet are then only in Claude Code's transcripts")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// confirmPurge asks whether the state is to go.
func (a verbs) confirmPurge(ctx context.Context, dir string) error {
	if !show.Exists(dir) {
		return nil
	}
	ask := term.NewAsker(a.Stderr)
	if ask == nil {
		return control.Usage("--purge asks before it removes "+dir+", and there is no terminal to ask at",
			"add --yes to remove it without being asked")
	}
	ok, err := ask.Yes(ctx, "remove cursors and outbox in "+dir+" ("+amount.Size(stateSize(dir))+")?", false)
	if err == nil && !ok {
		err = control.NewError("declined", "nothing was changed", "without --purge the state stays")
	}
	return err
}

func (a verbs) uninstall(ctx context.Context, t *theService, purge bool) error {
	removal, err := t.Uninstall(ctx)
	if err != nil {
		return err
	}
	removed := append(removal.Removed, t.removeTraces(ctx)...)
	var b strings.Builder
	if removal.Was {
		b.WriteString("the service is stopped and removed\n")
	} else {
		b.WriteString("ccship was not installed as a service\n")
	}
	for _, path := range removed {
		b.WriteString("removed " + path + "\n")
	}
	for _, path := range removal.Kept {
		b.WriteString("left " + path + ", which the package owns\n")
	}
	if purge && show.Exists(t.config.StateDir) {
		if err := t.purge(ctx); err != nil {
			return errors.Join(a.Print(b.String()), err)
		}
		b.WriteString("removed cursors and outbox in " + t.config.StateDir + "\n")
	}
	for _, left := range []struct{ what, path string }{
		{"configuration", t.config.Path}, {"key", t.config.APIKeyFile}, {"masking key", t.config.RedactKeyFile()},
		{"state", t.config.StateDir},
	} {
		if show.Exists(left.path) {
			b.WriteString("left " + left.what + ": " + left.path + " (" + amount.Size(fileSize(left.path)) + ")\n")
		}
	}
	return a.Print(b.String())
}

// removeTraces removes the socket of a daemon that was killed, the locks of the roots and the service's log files.
func (t *theService) removeTraces(ctx context.Context) (removed []string) {
	for _, path := range t.sockets() {
		info, err := os.Lstat(path)
		if err != nil || info.Mode().Type() != fs.ModeSocket {
			continue
		}
		if _, err := control.Dial(path).Status(ctx); errors.Is(err, control.ErrNotRunning) && os.Remove(path) == nil {
			removed = append(removed, path)
		}
	}
	if locks, err := sys.RemoveLock(t.config.Roots); err == nil { // else a daemon without the service uses them
		removed = append(removed, locks...)
	}
	dir := filepath.Dir(t.config.Socket)
	ours := t.config.OriginOf("socket") == config.FromDefault && filepath.Base(dir) == "ccship"
	if ours && dir != t.config.StateDir {
		_ = os.Remove(dir) // fails if it is not empty
	}
	if log := LogPath(t.config); log != "" {
		for _, path := range []string{log, log + ".1"} {
			if os.Remove(path) == nil {
				removed = append(removed, path)
			}
		}
		if filepath.Dir(log) != t.config.StateDir {
			_ = os.Remove(filepath.Dir(log)) // as above
		}
	}
	return removed
}

// stateFiles returns the files in the state folder that have the names which the daemon gives.
func stateFiles(dir string) (paths []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case name == "state.db", strings.HasPrefix(name, "state.db."), name == "lock", name == "machine-id",
			name == "ccship.sock":
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	return paths
}

func stateSize(dir string) (bytes int64) {
	for _, path := range stateFiles(dir) {
		bytes += fileSize(path)
	}
	return bytes
}

// fileSize returns the size of a file, or of all files in a folder; 0 when it is not there.
func fileSize(path string) (bytes int64) {
	_ = filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil //nolint:nilerr // what cannot be read is not counted
		}
		if info, err := e.Info(); err == nil {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}

// purge removes the daemon's own files from the state folder, and the folder once it is empty: it may be one that
// someone has named and uses for more, and the database of `ccship up` lies below it.
func (t *theService) purge(ctx context.Context) error {
	if _, status, err := control.Reach(ctx, t.sockets()); err == nil {
		return control.NewError(control.CodeInUse,
			fmt.Sprintf("the state is not removed: a daemon still uses it (pid %d)", status.PID),
			"stop it and run the command again")
	}
	for _, path := range append(stateFiles(t.config.StateDir), t.config.ProvenServersFile()) {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove state: %w", err)
		}
	}
	_ = os.Remove(t.config.StateDir) // fails when something else is in it
	return nil
}
