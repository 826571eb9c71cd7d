package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/internal/amount"
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

// userChange is what `user set` changes.
type userChange struct {
	role, bytes, sessions string
	disable, enable       bool
}

func (p *cli) newUserSet() *cobra.Command {
	var x userChange
	c := &cobra.Command{
		Use:   "set NAME",
		Short: "Show what is stored of a user; change its role, what may be stored, and whether it may log in",
		Example: `  ccship-server user set ann
  ccship-server user set ann --role owner
  ccship-server user set ann --bytes 10GiB --sessions 5000
  ccship-server user set ann --disable`,
		Args: wrapArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if x.disable && x.enable {
				return usage(c, errors.New("--disable and --enable exclude each other"))
			}
			return p.withStore(c, func(s store.Store) error {
				u, err := findUser(c.Context(), s, args[0])
				if err != nil {
					return err
				}
				if err := x.apply(c, s, &u); err != nil {
					return err
				}
				return p.showUser(c, s, u)
			})
		},
	}
	const values = ", default (the limit of serve) or none"
	c.Flags().StringVar(&x.role, "role", "", roleHelp)
	c.Flags().StringVar(&x.bytes, "bytes", "", "bytes that may be stored: a size such as 10GiB"+values)
	c.Flags().StringVar(&x.sessions, "sessions", "", "sessions that may be stored: a number"+values)
	c.Flags().BoolVar(&x.disable, "disable", false, "refuse its keys and logins; its sessions are kept")
	c.Flags().BoolVar(&x.enable, "enable", false, "accept its keys and logins again")
	printsJSON(c)
	return c
}

// apply changes a user. What is wrong in the flags is found first.
func (x *userChange) apply(c *cobra.Command, s store.Store, u *server.User) error {
	var role server.Role
	if x.role != "" {
		var err error
		if role, err = server.ParseRole(x.role); err != nil {
			return usage(c, fmt.Errorf("bad --role: %w", err))
		}
	}
	quota, err := changedQuota(c, u.Quota, x.bytes, x.sessions)
	if err != nil {
		return err
	}
	if role != "" {
		err = auth.SetRole(c.Context(), s, *u, role, 0)
	}
	if err == nil && (x.disable || x.enable) {
		err = auth.Disable(c.Context(), s, *u, x.disable, 0)
	}
	err = explain(err, auth.ErrLastOwner, "ccship-server user set NAME --role owner")
	if err == nil && quota != u.Quota {
		err = s.SetQuota(c.Context(), u.ID, quota)
	}
	if err != nil {
		return err
	}
	*u, err = findUser(c.Context(), s, u.Name)
	return err
}

// changedQuota is a user's quota with what the flags change. Its errors are usage errors.
func changedQuota(c *cobra.Command, q server.Quota, bytes, sessions string) (server.Quota, error) {
	var err error
	if c.Flags().Changed("bytes") {
		if q.Bytes, err = parseLimit(bytes, amount.ParseSize); err != nil {
			return q, usage(c, fmt.Errorf("bad --bytes %q: want a size such as 10GiB, default or none", bytes))
		}
	}
	if c.Flags().Changed("sessions") {
		q.Sessions, err = parseLimit(sessions, func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) })
		if err != nil {
			return q, usage(c, fmt.Errorf("bad --sessions %q: want a number from 1, default or none", sessions))
		}
	}
	return q, nil
}

func parseLimit(text string, parse func(string) (int64, error)) (int64, error) {
	switch text {
	case "default":
		return 0, nil
	case "none":
		return server.NoQuota, nil
	}
	n, err := parse(text)
	if err == nil && n < 1 {
		err = errors.New("not positive")
	}
	return n, err
}

func (p *cli) showUser(c *cobra.Command, s store.Store, u server.User) error {
	has, err := s.Stored(c.Context(), u.ID)
	if err != nil {
		return err
	}
	if p.json {
		return printJSON(c.OutOrStdout(), struct {
			Schema   int    `json:"schema_version"`
			User     string `json:"user"`
			Role     string `json:"role"`
			Disabled bool   `json:"disabled"`
			Bytes    int64  `json:"stored_bytes"`
			Sessions int64  `json:"stored_sessions"`
			Quota    struct {
				Bytes    string `json:"bytes"`
				Sessions string `json:"sessions"`
			} `json:"quota"`
		}{schemaVersion, u.Name, string(u.Role), !u.Disabled.IsZero(), has.Bytes, has.Sessions, struct {
			Bytes    string `json:"bytes"`
			Sessions string `json:"sessions"`
		}{limitText(u.Quota.Bytes, amount.ExactSize), limitText(u.Quota.Sessions, plain)}})
	}
	state := ""
	if !u.Disabled.IsZero() {
		state = ", disabled"
	}
	return term.Printf(c.OutOrStdout(), "role      %s%s\nbytes     %s stored, limit: %s\n"+
		"sessions  %d stored, limit: %s\n", u.Role, state, amount.Size(has.Bytes),
		limitText(u.Quota.Bytes, amount.ExactSize), has.Sessions, limitText(u.Quota.Sessions, plain))
}

func plain(n int64) string { return strconv.FormatInt(n, 10) }

// limitText is a limit as the flags take it.
func limitText(n int64, text func(int64) string) string {
	switch n {
	case 0:
		return "default"
	case server.NoQuota:
		return "none"
	}
	return text(n)
}
