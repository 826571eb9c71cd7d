package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
	"github.com/ccship/ccship/server/store/postgres"
)

// defaultStore returns what the environment says, else below the user's state directory; "" where that is unknown, and
// then
// --store must be given.
func defaultStore() string {
	// An address with a password in it is better kept out of a command line that everybody on a machine can read.
	if url := os.Getenv("CCSHIP_SERVER_STORE"); url != "" {
		return url
	}
	dir := stateDir()
	if dir == "" {
		return ""
	}
	return "sqlite:" + filepath.Join(dir, "server.db")
}

// stateDir returns where the server keeps what nobody named a location for; "" where the user has no home.
func stateDir() string {
	dir := os.Getenv("XDG_STATE_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "ccship-server")
}

// openStore opens the store, with hints for what people run into.
func openStore(ctx context.Context, url string, how store.Opening) (store.Store, error) {
	s, err := store.Open(ctx, url, how)
	if err == nil {
		return s, nil
	}
	return nil, explainOpen(err)
}

func explainOpen(err error) error {
	if opening, ok := errors.AsType[*postgres.OpenError](err); ok && opening.Hint != "" {
		return hinted{err, opening.Hint}
	}
	switch {
	case errors.Is(err, store.ErrBadURL):
		return usageError{hinted{err, "try --store sqlite:/var/lib/ccship/server.db"}}
	case errors.Is(err, store.ErrBadBlocks):
		return usageError{hinted{err, "for example --blocks 's3://bucket/ccship?endpoint=https://host'"}}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR),
		errors.Is(err, syscall.EISDIR):
		return hinted{err, "choose a file you may write with --store sqlite:PATH"}
	case errors.Is(err, store.ErrOtherBuild):
		return hinted{err, "name one with --store sqlite:PATH, or move the old file away"}
	case errors.Is(err, store.ErrNewer):
		return hinted{err, "the newest version is at https://github.com/ccship/ccship/releases"}
	}
	return err
}

// withStore opens a store for one piece of work.
func (p *cli) withStore(c *cobra.Command, work func(store.Store) error) (err error) {
	s, err := openStore(c.Context(), p.store, store.Opening{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err = work(s); errors.Is(err, server.ErrCold) {
		return hinted{err, "cold storage needs what the server has: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a " +
			"role; ccship-server serve --blocks says where it is"}
	}
	return err
}

// removeCold removes from cold storage what was forgotten or masked, which the server otherwise does within a minute.
func removeCold(c *cobra.Command, s store.Store) {
	if err := s.Sweep(c.Context()); err != nil {
		term.Printf(c.ErrOrStderr(), "not removed from cold storage yet: %v; the server goes on trying\n", err)
	}
}

// listing returns a command that lists what a store has, as one document or as a table below its head.
func (p *cli) listing(short string,
	list func(*cobra.Command, store.Store) (document any, table [][]any, err error)) *cobra.Command {
	c := &cobra.Command{Use: "list", Short: short, Args: wrapArgs(cobra.NoArgs)}
	c.RunE = func(c *cobra.Command, _ []string) error {
		return p.withStore(c, func(s store.Store) error {
			document, table, err := list(c, s)
			switch {
			case err != nil:
				return err
			case p.json:
				return printJSON(c.OutOrStdout(), document)
			}
			t := term.NewTable(c.OutOrStdout(), table[0]...)
			for _, row := range table[1:] {
				t.Row(row...)
			}
			return t.Flush()
		})
	}
	printsJSON(c)
	return c
}
