package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/audit"
	"github.com/ccship/ccship/server/store"
	"github.com/ccship/ccship/transcript"
	masking "github.com/ccship/ccship/transcript/redact"
)

// forgetOptions are the flags of forget.
type forgetOptions struct {
	p          *cli
	user       string
	lines, yes bool
}

func (p *cli) newForget() *cobra.Command {
	o := forgetOptions{p: p}
	c := &cobra.Command{
		Use:   "forget SESSION --yes | forget --lines [SESSION]",
		Short: "Remove a user's session and its agents for good, or mask the secrets in stored lines",
		Long: "Remove a user's session and its agents. They are never stored again.\n\nWith --lines, count the " +
			"secrets in stored lines by the built-in rules, of all sessions or of one and its agents. With --yes " +
			"too, replace each by a token of the same length, in every generation and in what is derived from it. " +
			"When a daemon sends such a line again, it is stored with the same tokens; `ccship verify` counts it " +
			"apart.",
		Args: wrapArgs(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			session := ""
			if len(args) > 0 {
				session = args[0]
			}
			switch {
			case o.lines:
				return o.maskLines(c, session)
			case session == "":
				return usageError{hinted{errors.New("SESSION is missing"), "with --lines, secrets in all sessions are masked"}}
			case !o.yes:
				return usageError{hinted{fmt.Errorf("this removes %s and cannot be undone", session),
					"add --yes to confirm; backups still contain it"}}
			}
			return o.forgetSession(c, session)
		},
	}
	c.Flags().StringVar(&o.user, "user", "", "user whose session is meant; needed when several users have one of that id")
	c.Flags().BoolVar(&o.lines, "lines", false, "mask secrets in lines; remove nothing")
	c.Flags().BoolVar(&o.yes, "yes", false, "confirm")
	printsJSON(c)
	return c
}

// forgetSession removes a session and says so.
func (o *forgetOptions) forgetSession(c *cobra.Command, session string) error {
	return o.p.withStore(c, func(s store.Store) error {
		gone, err := forget(c.Context(), s, session, o.user)
		if err != nil {
			return err
		}
		removeCold(c, s)
		if o.p.json {
			return printJSON(c.OutOrStdout(), struct {
				Schema    int    `json:"schema_version"`
				SessionID string `json:"session_id"`
				Lines     int64  `json:"lines_removed"`
			}{schemaVersion, gone.SessionID, gone.Lines})
		}
		return term.Printf(c.ErrOrStderr(), "%s is forgotten: %d lines removed\n", gone.SessionID, gone.Lines)
	})
}

// forget removes one user's session; "" is the only user who has it.
func forget(ctx context.Context, s store.Store, session, user string) (server.Forgotten, error) {
	owner, err := userID(ctx, s, user)
	if err != nil {
		return server.Forgotten{}, err
	}
	gone, err := s.Forget(ctx, server.Scope{All: true}, session, owner, time.Now())
	if errors.Is(err, server.ErrNotFound) {
		return gone, hinted{fmt.Errorf("there is no session %s", session), "the viewer and GET /api/sessions list them"}
	}
	if no, several := errors.AsType[*server.AmbiguousError](err); several {
		return gone, namingUser(ctx, s, no)
	}
	return gone, err
}

// namingUser names the users between whom a person has to choose.
func namingUser(ctx context.Context, s store.Store, no *server.AmbiguousError) error {
	users, err := s.Users(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, x := range no.Choices {
		for _, u := range users {
			if u.ID == x.Owner {
				names = append(names, u.Name)
			}
		}
	}
	return hinted{no, "add --user with one of: " + strings.Join(names, ", ")}
}

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
