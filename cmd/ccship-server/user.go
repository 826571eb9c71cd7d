package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/store"
)

func newUser() *cobra.Command {
	return group("user", "Add, list and change users", "add, list, role, quota, disable or enable",
		newUserAdd(), newUserList(), newUserRole(), newUserQuota(), newUserDisable(), newUserEnable())
}

const roleHelp = "owner (sees and manages everything), member (sends sessions; sees own and shared ones), " +
	"viewer (sees shared ones)"

func newUserAdd() *cobra.Command {
	var url, role string
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
			return withStore(c, url, func(s store.Store) error {
				u, err := s.AddUser(c.Context(), args[0], r, time.Now())
				if errors.Is(err, server.ErrExists) {
					return hinted{err, "choose another name; ccship-server user list shows those in use"}
				}
				if err != nil {
					return err
				}
				_, err = term.Printf(c.ErrOrStderr(), "user %q is added as %s\n", u.Name, u.Role)
				return err
			})
		},
	}
	c.Flags().StringVar(&role, "role", string(server.Member), roleHelp)
	storeFlag(c, &url)
	return c
}

func newUserList() *cobra.Command {
	var url string
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List users",
		Args:  wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return withStore(c, url, func(s store.Store) error {
				users, err := s.Users(c.Context())
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(c.OutOrStdout(), usersDocument(users))
				}
				t := term.NewTable(c.OutOrStdout(), "NAME", "ROLE", "CREATED", "DISABLED")
				for _, u := range users {
					t.Row(u.Name, u.Role, stamp(u.Created), stamp(u.Disabled))
				}
				return t.Flush()
			})
		},
	}
	jsonFlag(c, &asJSON)
	storeFlag(c, &url)
	return c
}

func usersDocument(users []server.User) any {
	type one struct {
		Name     string      `json:"name"`
		Role     server.Role `json:"role"`
		Created  time.Time   `json:"created"`
		Disabled *time.Time  `json:"disabled"`
	}
	d := struct {
		Schema int   `json:"schema_version"`
		Users  []one `json:"users"`
	}{schemaVersion, []one{}}
	for _, u := range users {
		d.Users = append(d.Users, one{u.Name, u.Role, u.Created, moment(u.Disabled)})
	}
	return d
}

// changeUser runs a change of one user, and says it is done.
func changeUser(c *cobra.Command, url, name, done string, change func(*auth.Access, server.User) error) error {
	return withStore(c, url, func(s store.Store) error {
		u, err := findUser(c.Context(), s, name)
		if err != nil {
			return err
		}
		err = change(auth.New(s, slog.New(slog.NewTextHandler(io.Discard, nil))), u)
		if errors.Is(err, auth.ErrLastOwner) {
			return hinted{err, "ccship-server user role NAME owner"}
		}
		if err != nil {
			return err
		}
		_, err = term.Printf(c.ErrOrStderr(), "user %q %s\n", u.Name, done)
		return err
	})
}

func newUserRole() *cobra.Command {
	var url string
	c := &cobra.Command{
		Use:   "role NAME ROLE",
		Short: "Change a user's role: " + roleHelp,
		Args:  wrapArgs(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			role, err := server.ParseRole(args[1])
			if err != nil {
				return usage(c, err)
			}
			return changeUser(c, url, args[0], "is "+string(role), func(a *auth.Access, u server.User) error {
				return a.SetRole(c.Context(), u, role)
			})
		},
	}
	storeFlag(c, &url)
	return c
}

func newUserDisable() *cobra.Command {
	var url string
	c := &cobra.Command{
		Use:   "disable NAME",
		Short: "Refuse a user's keys and logins; its sessions are kept",
		Args:  wrapArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return changeUser(c, url, args[0], "is disabled", func(a *auth.Access, u server.User) error {
				return a.Disable(c.Context(), u, true)
			})
		},
	}
	storeFlag(c, &url)
	return c
}

func newUserEnable() *cobra.Command {
	var url string
	c := &cobra.Command{
		Use:   "enable NAME",
		Short: "Accept a disabled user's keys and logins again",
		Args:  wrapArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return changeUser(c, url, args[0], "is enabled", func(a *auth.Access, u server.User) error {
				return a.Disable(c.Context(), u, false)
			})
		},
	}
	storeFlag(c, &url)
	return c
}
