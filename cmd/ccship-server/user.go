package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
)

func (p *cli) newUser() *cobra.Command {
	return group("user", "Add, list and change users", "add, list or set",
		p.newUserAdd(), p.newUserList(), p.newUserSet())
}

const roleHelp = "owner (sees and manages everything), member (sends sessions; sees own and shared ones), " +
	"viewer (sees shared ones)"

func (p *cli) newUserAdd() *cobra.Command {
	var role string
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a user; create a key for it with key create --user NAME",
		Args:  wrapArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkName(c, "name", args[0]); err != nil {
				return err
			}
			r, err := server.ParseRole(role)
			if err != nil {
				return usage(c, fmt.Errorf("bad --role: %w", err))
			}
			return p.withStore(c, func(s store.Store) error {
				u, err := s.AddUser(c.Context(), args[0], r, server.By{At: time.Now()})
				if err != nil {
					return explain(err, server.ErrExists, "choose another name; ccship-server user list shows those in use")
				}
				return term.Printf(c.ErrOrStderr(), "user %q is added as %s\n", u.Name, u.Role)
			})
		},
	}
	c.Flags().StringVar(&role, "role", string(server.Member), roleHelp)
	return c
}

func (p *cli) newUserList() *cobra.Command {
	type one struct {
		Name     string      `json:"name"`
		Role     server.Role `json:"role"`
		Created  time.Time   `json:"created"`
		Disabled *time.Time  `json:"disabled"`
	}
	return p.listing("List users", func(c *cobra.Command, s store.Store) (any, [][]any, error) {
		d := struct {
			Schema int   `json:"schema_version"`
			Users  []one `json:"users"`
		}{schemaVersion, []one{}}
		table := [][]any{{"NAME", "ROLE", "CREATED", "DISABLED"}}
		users, err := s.Users(c.Context())
		for _, u := range users {
			d.Users = append(d.Users, one{u.Name, u.Role, u.Created, moment(u.Disabled)})
			table = append(table, []any{u.Name, u.Role, stamp(u.Created), stamp(u.Disabled)})
		}
		return d, table, err
	})
}
