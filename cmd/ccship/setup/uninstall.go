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
	"github.com/ccship/ccship/internal/sys"
)

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
