package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/audit"
	"github.com/ccship/ccship/server/store"
	"github.com/ccship/ccship/server/store/sqlite"
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

// maxFindings is how many findings are printed; the others are counted.
const maxFindings = 1000

// checker is a store that can check its own pages and indexes. It calls problem for each defect.
type checker interface {
	Check(ctx context.Context, problem func(string)) error
}

func (p *cli) newVerify() *cobra.Command {
	var secrets bool
	c := &cobra.Command{
		Use:   "verify",
		Short: "Read everything that is stored and report inconsistencies, or secrets",
		Long: "Check the database, then read every line of every generation, attachment and document. Report " +
			"lines out of order, invalid JSON, wrong counts, lengths and hashes. ccship verify compares the store " +
			"with the transcript files.\n\nWith --secrets, report instead what has secrets by the built-in rules, " +
			"in lines, checkpoints, documents, and attachments up to 16 MiB: session, position and rule, never a " +
			"secret. Exit code 1 if there is something to report.",
		Args: wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withStore(c, func(s store.Store) (err error) {
				var r audited
				if secrets {
					r, err = scanStore(c.Context(), s, newProgress(c.ErrOrStderr()))
				} else {
					r, err = verify(c.Context(), s, newProgress(c.ErrOrStderr()))
				}
				if err != nil {
					return err
				}
				return p.printAudit(c, r)
			})
		},
	}
	c.Flags().BoolVar(&secrets, "secrets", false, "report secrets")
	printsJSON(c)
	return c
}

// audited is what was found in a store.
type audited interface {
	print(c *cobra.Command) error
	verdict() error // nil: nothing is wrong
}

func (p *cli) printAudit(c *cobra.Command, r audited) error {
	if !p.json {
		return cmp.Or(r.print(c), r.verdict())
	}
	if err := printJSON(c.OutOrStdout(), r); err != nil {
		return err
	}
	if err := r.verdict(); err != nil {
		return silent{err} // the document has been printed
	}
	return nil
}

func (r *report) verdict() error {
	if r.Problems == 0 {
		return nil
	}
	return hinted{fmt.Errorf("%d problems found", r.Problems), "restore a backup; or run ccship verify " +
		"--repair on the clients, which sends again what the store lacks"}
}

// report is what verify found.
type report struct {
	Schema      int       `json:"schema_version"`
	Transcripts int64     `json:"transcripts"`
	Generations int64     `json:"generations"`
	Lines       int64     `json:"lines"`
	Bytes       int64     `json:"bytes"`
	Retired     int64     `json:"retired"`    // lines that rules of retention removed
	Files       int64     `json:"files"`      // attachments and contents of documents
	FileBytes   int64     `json:"file_bytes"` // of them
	Problems    int64     `json:"problems"`
	Findings    []finding `json:"findings"` // the first of them
}

type finding struct {
	SessionID  string `json:"session_id,omitempty"`
	Machine    string `json:"machine,omitempty"`
	Epoch      string `json:"epoch,omitempty"`
	Generation int64  `json:"generation"`
	Problem    string `json:"problem"`
}

func (r *report) add(f finding) {
	if r.Problems++; r.Problems <= maxFindings {
		r.Findings = append(r.Findings, f)
	}
}

func verify(ctx context.Context, s store.Store, p *progress) (*report, error) {
	r := &report{Schema: schemaVersion, Findings: []finding{}}
	if db, ok := s.(checker); ok {
		if err := db.Check(ctx, func(problem string) { r.add(finding{Problem: problem}) }); err != nil {
			return nil, err
		}
	}
	read, err := audit.Run(ctx, s, func(f audit.Finding) {
		r.add(finding{f.SessionID, f.Machine, f.Epoch, f.Generation, f.Problem})
	}, func(a audit.Progress) {
		p.say("%d transcripts, %d lines, %s", a.Streams, a.Lines, amount.Size(a.Bytes))
	})
	if err != nil && r.Problems == 0 {
		return nil, err
	}
	if err != nil {
		r.add(finding{Problem: err.Error()}) // what is broken can't be read to its end
	}
	if err == nil {
		err = s.AuditBlobs(ctx, func(problem string) { r.add(finding{Problem: problem}) }, func(files, bytes int64) {
			r.Files, r.FileBytes = files, bytes
			p.say("%d files, %s", files, amount.Size(bytes))
		})
		if err != nil {
			return nil, err
		}
	}
	r.Transcripts, r.Generations, r.Lines, r.Bytes = read.Streams, read.Generations, read.Lines, read.Bytes
	r.Retired = read.Retired
	return r, nil
}

// print writes the report for people.
func (r *report) print(c *cobra.Command) error {
	out := c.OutOrStdout()
	for _, f := range r.Findings {
		where := "database"
		if f.SessionID != "" {
			where = fmt.Sprintf("%s, machine %q, epoch %q, generation %d", f.SessionID, f.Machine, f.Epoch, f.Generation)
		}
		term.Printf(out, "%s: %s\n", where, f.Problem)
	}
	if more := r.Problems - int64(len(r.Findings)); more > 0 {
		term.Printf(out, "and %d more\n", more)
	}
	if r.Retired > 0 {
		term.Printf(c.ErrOrStderr(), "%s retired by policy\n", amount.Counted(r.Retired, "line was", "lines were"))
	}
	return term.Printf(c.ErrOrStderr(), "read %d transcripts, %d generations, %d lines, %s; %d files, %s\n",
		r.Transcripts, r.Generations, r.Lines, amount.Size(r.Bytes), r.Files, amount.Size(r.FileBytes))
}
