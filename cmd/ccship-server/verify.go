package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/server/audit"
	"github.com/ccship/ccship/server/store"
)

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
