package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/server/audit"
	"github.com/ccship/ccship/server/store"
	masking "github.com/ccship/ccship/transcript/redact"
)

func (r *scanReport) verdict() error {
	if r.Secrets == 0 {
		return nil
	}
	return hinted{fmt.Errorf("%d secrets found in %d places", r.Secrets, r.WithSecrets),
		"revoke them where they were issued; `ccship-server forget --lines --yes` masks them in place"}
}

// scanReport is what verify --secrets found.
type scanReport struct {
	Schema      int           `json:"schema_version"`
	Transcripts int64         `json:"transcripts"`
	Lines       int64         `json:"lines"`
	Files       int64         `json:"files"`         // versions of documents, and attachments
	Skipped     int64         `json:"files_skipped"` // too large
	Bytes       int64         `json:"bytes"`
	Secrets     int64         `json:"secrets"`
	WithSecrets int64         `json:"lines_with_secrets"` // and other places
	Findings    []scanFinding `json:"findings"`           // the first of them
}

// scanFinding is a line with secrets. It holds none of them.
type scanFinding struct {
	SessionID  string   `json:"session_id"`
	User       string   `json:"user"`
	Machine    string   `json:"machine"`
	Epoch      string   `json:"epoch"`
	Generation int64    `json:"generation"`
	Line       int64    `json:"line"`            // counted from 0; -1: no line
	Place      string   `json:"place,omitempty"` // a checkpoint, a version of a document or an attachment
	Replaced   bool     `json:"replaced"`        // other bytes are in its place; these are kept too
	Secrets    int      `json:"secrets"`
	Rules      []string `json:"rules"`
}

func scanStore(ctx context.Context, s store.Store, p *progress) (*scanReport, error) {
	r := &scanReport{Schema: schemaVersion, Findings: []scanFinding{}}
	masker, err := masking.New(masking.NewKey()) // tokens are not kept
	if err != nil {
		return nil, err
	}
	who, err := names(ctx, s)
	if err != nil {
		return nil, err
	}
	read, err := audit.ScanSecrets(ctx, s, masker, func(f audit.SecretFinding) {
		r.Secrets += int64(f.Secrets)
		if r.WithSecrets++; r.WithSecrets <= maxFindings {
			x := f.Session
			r.Findings = append(r.Findings, scanFinding{x.SessionID, who[x.Owner], x.Machine, f.Epoch, f.Generation, f.Line,
				f.Place, f.Replaced, f.Secrets, f.Rules})
		}
	}, func(a audit.ScanProgress) {
		p.say("%d transcripts, %d lines, %s; %d secrets", a.Streams, a.Lines, amount.Size(a.Bytes), r.Secrets)
	})
	if err != nil {
		return nil, err
	}
	r.Transcripts, r.Lines, r.Bytes = read.Streams, read.Lines, read.Bytes
	r.Files, r.Skipped = read.Files, read.Skipped
	return r, nil
}

// print writes the report for people.
func (r *scanReport) print(c *cobra.Command) error {
	out := c.OutOrStdout()
	for _, f := range r.Findings {
		if f.Place != "" {
			term.Printf(out, "%q of %q, machine %q, %q: %s\n", f.SessionID, f.User, f.Machine, f.Place,
				strings.Join(f.Rules, ", "))
			continue
		}
		replaced := ""
		if f.Replaced {
			replaced = " (replaced)"
		}
		term.Printf(out, "%q of %q, machine %q, epoch %q, generation %d, line %d%s: %s\n", f.SessionID, f.User, f.Machine,
			f.Epoch, f.Generation, f.Line+1, replaced, strings.Join(f.Rules, ", "))
	}
	if r.Skipped > 0 {
		term.Printf(out, "%d files are too large to be read\n", r.Skipped)
	}
	if more := r.WithSecrets - int64(len(r.Findings)); more > 0 {
		term.Printf(out, "and %d more places\n", more)
	}
	return term.Printf(c.ErrOrStderr(), "read %d transcripts, %d lines, %s\n", r.Transcripts, r.Lines,
		amount.Size(r.Bytes))
}
