package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/store"
)

func (p *cli) newShare() *cobra.Command {
	return group("share", "Share the sessions of a project with another user", "add, rm or list",
		p.newShareAdd(), p.newShareRemove(), p.newShareList())
}

// shareFlags name a share.
type shareFlags struct {
	owner, with, project string
	documents            bool
}

// find puts the named share together.
func (f *shareFlags) find(c *cobra.Command, s store.Store) (server.Share, error) {
	owner, err := findUser(c.Context(), s, f.owner)
	if err != nil {
		return server.Share{}, err
	}
	with, err := findUser(c.Context(), s, f.with)
	if err != nil {
		return server.Share{}, err
	}
	x, err := auth.FindShare(c.Context(), s, owner, with, f.project)
	if _, ok := errors.AsType[*auth.AmbiguousProjectError](err); ok {
		return x, hinted{err, "give the hash as --project"}
	}
	return x, err
}

// verb returns a command that does something with the share that its flags name.
func (f *shareFlags) verb(p *cli, use, short string,
	do func(*cobra.Command, store.Store, server.Share) error) *cobra.Command {
	c := &cobra.Command{
		Use:   use + " --owner NAME --with NAME --project PROJECT",
		Short: short,
		Args:  wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if f.owner == "" || f.with == "" || f.project == "" {
				return usage(c, errors.New("--owner, --with and --project must be given"))
			}
			return p.withStore(c, func(s store.Store) error {
				x, err := f.find(c, s)
				if err != nil {
					return err
				}
				return do(c, s, x)
			})
		},
	}
	c.Flags().StringVar(&f.owner, "owner", "", "user who owns the sessions")
	c.Flags().StringVar(&f.with, "with", "", "user who may see them")
	c.Flags().StringVar(&f.project, "project", "", "the project's name or hash")
	return c
}

func (p *cli) newShareAdd() *cobra.Command {
	var f shareFlags
	c := f.verb(p, "add", "Share the sessions of a project with another user, including future ones",
		func(c *cobra.Command, s store.Store, x server.Share) error {
			if x.Project == "" {
				return hinted{fmt.Errorf("%q has no session of a project %q", f.owner, f.project),
					"the viewer lists the projects; a project exists once it has a session"}
			}
			x.Created, x.Documents = time.Now(), f.documents
			if err := s.AddShare(c.Context(), x); err != nil {
				return err
			}
			return term.Printf(c.ErrOrStderr(), "%q may see %q of %q\n", f.with, x.Project, f.owner)
		})
	c.Flags().BoolVar(&f.documents, "documents", false,
		"share linked documents too; without it, an existing share stops including them")
	return c
}

func (p *cli) newShareRemove() *cobra.Command {
	var f shareFlags
	return f.verb(p, "rm", "End a share", func(c *cobra.Command, s store.Store, x server.Share) error {
		if err := s.RemoveShare(c.Context(), x); err != nil {
			return explain(err, server.ErrNotFound, "ccship-server share list shows all shares")
		}
		return term.Printf(c.ErrOrStderr(), "%q no longer sees %q of %q\n", f.with, f.project, f.owner)
	})
}

func (p *cli) newShareList() *cobra.Command {
	type one struct {
		Owner       string    `json:"owner"`
		With        string    `json:"with"`
		ProjectHash string    `json:"project_hash"`
		Project     string    `json:"project"`
		Documents   bool      `json:"documents"`
		Created     time.Time `json:"created"`
	}
	return p.listing("List shares", func(c *cobra.Command, s store.Store) (any, [][]any, error) {
		d := struct {
			Schema int   `json:"schema_version"`
			Shares []one `json:"shares"`
		}{schemaVersion, []one{}}
		table := [][]any{{"OWNER", "WITH", "PROJECT", "DOCUMENTS", "HASH", "SINCE"}}
		shares, err := s.Shares(c.Context())
		if err != nil {
			return nil, nil, err
		}
		who, err := names(c.Context(), s)
		for _, x := range shares {
			d.Shares = append(d.Shares, one{who[x.Owner], who[x.With], x.ProjectHash, x.Project, x.Documents, x.Created})
			table = append(table, []any{who[x.Owner], who[x.With], x.Project, yesNo(x.Documents), x.ProjectHash,
				stamp(x.Created)})
		}
		return d, table, err
	})
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}
