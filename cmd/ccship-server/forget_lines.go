package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/audit"
	"github.com/ccship/ccship/server/store"
	"github.com/ccship/ccship/transcript"
)

// linesReport is what forget --lines found or masked.
type linesReport struct {
	Schema      int   `json:"schema_version"`
	Transcripts int64 `json:"transcripts"` // with secrets
	Lines       int64 `json:"lines"`       // with secrets
	Secrets     int64 `json:"secrets"`
	Masked      bool  `json:"masked"` // false: they are only counted
}

// maskLines masks the secrets in stored lines, or counts them, and says so. session is "" for all sessions.
func (o *forgetOptions) maskLines(c *cobra.Command, session string) error {
	return o.p.withStore(c, func(s store.Store) error {
		r, err := o.forgetLines(c.Context(), s, session, newProgress(c.ErrOrStderr()))
		if err != nil {
			return err
		}
		removeCold(c, s)
		if o.p.json {
			return printJSON(c.OutOrStdout(), r)
		}
		return r.print(c)
	})
}

func (o *forgetOptions) forgetLines(ctx context.Context, s store.Store, session string,
	p *progress) (*linesReport, error) {
	to := audit.MaskOptions{DryRun: !o.yes, Progress: func(read audit.ScanProgress, found audit.Found) {
		p.say("%d transcripts, %d lines, %s; %d secrets", read.Streams, read.Lines, amount.Size(read.Bytes), found.Secrets)
	}}
	seen, err := o.choose(ctx, s, session, &to)
	if err != nil {
		return nil, err
	}
	found, err := audit.Mask(ctx, s, to)
	if err != nil {
		return nil, err
	}
	if session != "" && !*seen {
		return nil, hinted{fmt.Errorf("there is no session %s", session), "the viewer and GET /api/sessions list them"}
	}
	r := &linesReport{schemaVersion, found.Transcripts, found.Lines, found.Secrets, o.yes}
	if !o.yes {
		return r, nil
	}
	return r, s.Scrub(ctx, func(done, total int64) { p.say("overwriting what is free: %d of %d pages", done, total) })
}

// choose limits what is masked to a session and its agents, and to a user. seen becomes true with the first transcript.
func (o *forgetOptions) choose(ctx context.Context, s store.Store, session string,
	to *audit.MaskOptions) (seen *bool, err error) {
	owner, err := userID(ctx, s, o.user)
	if err != nil {
		return nil, err
	}
	if owner == 0 && session != "" {
		_, err := s.Resolve(ctx, server.Scope{All: true}, server.Ref{SessionID: session})
		if no, several := errors.AsType[*server.AmbiguousError](err); several {
			return nil, namingUser(ctx, s, no)
		}
	}
	seen = new(bool)
	to.Chosen = func(x server.Session) bool {
		chosen := (owner == 0 || x.Owner == owner) && (session == "" ||
			slices.Contains(transcript.ForgetNames(x.SessionID), session) ||
			slices.Contains(transcript.ForgetNames(x.Parent), session))
		*seen = *seen || chosen
		return chosen
	}
	return seen, nil
}

// print writes the report for people.
func (r *linesReport) print(c *cobra.Command) error {
	words := amount.Counted(r.Secrets, "secret", "secrets") + " in " + amount.Counted(r.Lines, "line", "lines") + " of " +
		amount.Counted(r.Transcripts, "transcript", "transcripts")
	switch {
	case r.Secrets == 0:
		words = "no secrets are found in stored lines"
	case r.Masked:
		words = "masked " + words + "; revoke them where they were issued, and remove backups that still contain them"
	default:
		words += "; add --yes to mask them in place. Backups still contain them"
	}
	return term.Printf(c.ErrOrStderr(), "%s\n", words)
}
