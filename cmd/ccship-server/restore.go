package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlite"
)

func (p *cli) newRestore() *cobra.Command {
	var from, blocks string
	var force bool
	c := &cobra.Command{
		Use:   "restore --from FILE",
		Short: "Restore a SQLite store from a backup; stop its servers first",
		Args:  wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if from == "" {
				return usage(c, errors.New("--from is missing"))
			}
			path, ok := strings.CutPrefix(p.store, "sqlite:")
			if path = strings.TrimPrefix(path, "//"); !ok || path == "" {
				return usageError{hinted{fmt.Errorf("restore writes a SQLite store, not %q", redact(p.store)),
					"use --store sqlite:PATH; for PostgreSQL use pg_restore"}}
			}
			if err := restoreFrom(c, path, from, force, blocks); err != nil {
				return explainRestore(err)
			}
			return term.Printf(c.ErrOrStderr(), "%s is restored from %s\n", path, from)
		},
	}
	c.Flags().StringVar(&from, "from", "", "the backup; - for standard input")
	c.Flags().StringVar(&blocks, "blocks", "",
		"`URL` of cold storage for what the backup had there, as for serve; without it, a new folder where it was")
	c.Flags().BoolVar(&force, "force", false, "replace an existing store")
	return c
}

// restoreFrom reads the backup from a file, or for - from standard input.
func restoreFrom(c *cobra.Command, path, from string, force bool, blocks string) error {
	in := c.InOrStdin()
	if from != "-" {
		f, err := os.Open(from)
		if err != nil {
			return fmt.Errorf("read backup: %w", err)
		}
		defer f.Close()
		in = f
	}
	return sqlite.Restore(c.Context(), path, bufio.NewReaderSize(in, 1<<20), force, blocks)
}

func explainRestore(err error) error {
	switch {
	case errors.Is(err, sqlite.ErrInUse):
		return hinted{err, "stop the server first"}
	case errors.Is(err, server.ErrCold):
		return hinted{err, "nothing was replaced; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name another --blocks"}
	case errors.Is(err, sqlite.ErrDamaged):
		return hinted{err, "take another backup; nothing was replaced"}
	case errors.Is(err, fs.ErrExist):
		return hinted{err, "choose another --store, or add --force to replace it; stop the server first"}
	case errors.Is(err, fs.ErrNotExist):
		return hinted{err, "ccship-server backup --to FILE creates one"}
	}
	return explainOpen(err)
}

// redact leaves the password out of a store's address.
func redact(url string) string {
	head, rest, ok := strings.Cut(url, "://")
	at := strings.LastIndexByte(rest, '@')
	if !ok || at < 0 {
		return url
	}
	return head + "://…" + rest[at:]
}
