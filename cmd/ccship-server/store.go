package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/server/store"
)

// storeFlag adds --store.
func storeFlag(c *cobra.Command, url *string) {
	c.Flags().StringVar(url, "store", defaultStore(),
		"where everything is stored: sqlite:PATH or postgres://…; also $CCSHIP_SERVER_STORE")
}

// defaultStore is what the environment says, else below the user's state directory; "" where that is unknown, and then
// --store must be given.
func defaultStore() string {
	// An address with a password in it is better kept out of a command line that everybody on a machine can read.
	if url := os.Getenv("CCSHIP_SERVER_STORE"); url != "" {
		return url
	}
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
func openStore(ctx context.Context, url string) (store.Store, error) {
	s, err := store.Open(ctx, url)
	if err == nil {
		return s, nil
	}
	return nil, explainOpen(err)
}

func explainOpen(err error) error {
	if opening, ok := errors.AsType[*store.OpenError](err); ok && opening.Hint != "" {
		return hinted{err, opening.Hint}
	}
	switch {
	case errors.Is(err, store.ErrBadURL):
		return usageError{hinted{err, "try --store sqlite:/var/lib/ccship/server.db"}}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR),
		errors.Is(err, syscall.EISDIR):
		return hinted{err, "choose a file you may write with --store sqlite:PATH"}
	case errors.Is(err, store.ErrNewer):
		return hinted{err, "the newest version is at https://github.com/ccship/ccship/releases"}
	}
	return err
}

// withStore opens a store for one piece of work.
func withStore(c *cobra.Command, url string, work func(store.Store) error) (err error) {
	s, err := openStore(c.Context(), url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return work(s)
}
