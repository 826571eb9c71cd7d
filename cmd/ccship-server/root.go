package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/server/store"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is what the person typed wrong.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// hinted is an error with what to do about it.
type hinted struct {
	error
	hint string
}

func (e hinted) Unwrap() error { return e.error }

// run is the whole program but its exit.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "ccship-server: %v\n", err)
	if h, ok := errors.AsType[hinted](err); ok {
		fmt.Fprintf(stderr, "hint: %s\n", h.hint)
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	return exitFailed
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "ccship-server",
		Short:         "Keeps the Claude Code conversations that ccship ships to it",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          wrapArgs(cobra.NoArgs),
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage(c, err)
	})
	root.AddCommand(newServe(), newKey(), newMigrate(), newVersion())
	return root
}

// usage marks an error as the person's, and says where the words are explained.
func usage(c *cobra.Command, err error) error {
	return usageError{hinted{err, fmt.Sprintf("see %s --help", c.CommandPath())}}
}

func wrapArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return usage(c, err)
		}
		return nil
	}
}

// storeFlag adds --store.
func storeFlag(c *cobra.Command, url *string) {
	c.Flags().StringVar(url, "store", defaultStore(), "where everything is kept: sqlite:PATH")
}

// defaultStore is below the user's state directory; "" where that is unknown, and then --store must be given.
func defaultStore() string {
	dir := os.Getenv("XDG_STATE_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return "sqlite:" + filepath.Join(dir, "ccship-server", "server.db")
}

// openStore opens the store, with hints for what people run into.
func openStore(ctx context.Context, url string) (*store.SQLite, error) {
	s, err := store.Open(ctx, url)
	switch {
	case err == nil:
		return s, nil
	case errors.Is(err, store.ErrBadURL):
		return nil, usageError{hinted{err, "try --store sqlite:/var/lib/ccship/server.db"}}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR),
		errors.Is(err, syscall.EISDIR):
		return nil, hinted{err, "choose a file you may write with --store sqlite:PATH"}
	case errors.Is(err, store.ErrNewer):
		return nil, hinted{err, "the newest version is at https://github.com/ccship/ccship/releases"}
	}
	return nil, err
}
