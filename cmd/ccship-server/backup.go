package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
)

func (p *cli) newBackup() *cobra.Command {
	var to string
	var force bool
	c := &cobra.Command{
		Use:   "backup --to FILE",
		Short: "Write a consistent copy of a SQLite store; servers can keep running",
		Args:  wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if to == "" {
				return usage(c, errors.New("--to is missing"))
			}
			if _, err := os.Lstat(to); err == nil && !force && to != "-" {
				return hinted{fmt.Errorf("%s exists already", to), "choose another --to, or add --force to replace it"}
			}
			return p.withStore(c, func(s store.Store) error {
				b, ok := s.(server.Backuper)
				if !ok {
					return hinted{errors.New("backup is for SQLite stores; back up PostgreSQL with its own tools"),
						"pg_dump --format=custom --file=ccship.dump DATABASE"}
				}
				size, err := backUp(c.Context(), b, to, term.Bytes(c.OutOrStdout()), newProgress(c.ErrOrStderr()))
				if err != nil {
					return err
				}
				return term.Printf(c.ErrOrStderr(), "backed up: %s\n", amount.Size(size))
			})
		},
	}
	c.Flags().StringVar(&to, "to", "", "the file to write; - for standard output")
	c.Flags().BoolVar(&force, "force", false, "replace an existing file")
	return c
}

// backUp writes a backup to a file, whole or not at all, or to stdout.
func backUp(ctx context.Context, b server.Backuper, to string, stdout io.Writer, p *progress) (size int64, err error) {
	report := func(done, total int64) {
		size = total
		p.say("%s of %s", amount.Size(done), amount.Size(total))
	}
	if to == "-" {
		return size, b.Backup(ctx, stdout, report)
	}
	f, err := sys.CreateFile(to)
	if err != nil {
		return 0, fmt.Errorf("make backup: %w", err)
	}
	defer f.Discard()
	out := bufio.NewWriterSize(f, 1<<20)
	if err := b.Backup(ctx, out, report); err != nil {
		return 0, err
	}
	if err = out.Flush(); err == nil {
		err = f.Commit()
	}
	if err != nil {
		return 0, fmt.Errorf("write backup: %w", err)
	}
	return size, nil
}
