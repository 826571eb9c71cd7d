package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/store"
)

func (p *cli) newKey() *cobra.Command {
	return group("key", "Create, list, replace and revoke API keys", "create, list or revoke",
		p.newKeyCreate(), p.newKeyList(), p.newKeyRevoke())
}

func (p *cli) newKeyCreate() *cobra.Command {
	var name, user, grace string
	var replace bool
	c := &cobra.Command{
		Use:   "create --name NAME",
		Short: "Create a key and print it once",
		Long: "Create a key and print it once: only its hash is stored. Use one key per machine, so that you can " +
			"revoke each separately. The first key of a store also creates its owner. With --replace, the new key " +
			"takes the name of an old one, which stays valid for --grace.",
		Args: wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkName(c, "--name", name); err != nil {
				return err
			}
			d, err := auth.ParseGrace(grace)
			if err != nil {
				return usage(c, fmt.Errorf("bad --grace: %w", err))
			}
			return p.withStore(c, func(s store.Store) error {
				if replace {
					return replaceKey(c, s, name, d)
				}
				return createKey(c, s, name, user)
			})
		},
	}
	c.Flags().StringVar(&name, "name", "", "what the key is for, for example the machine's name")
	c.Flags().StringVar(&user, "user", "", "user of the key; optional while there is only one user")
	c.Flags().BoolVar(&replace, "replace", false, "replace the key of that name")
	c.Flags().StringVar(&grace, "grace", "24h", "with --replace: how long the old key stays valid; 0s revokes it at once")
	return c
}

func createKey(c *cobra.Command, s store.Store, name, user string) error {
	owner, err := keyUser(c.Context(), s, user)
	if err != nil {
		return err
	}
	key, hash := auth.NewKey()
	err = s.AddKey(c.Context(), server.Key{User: owner, Name: name, Hash: hash, Created: time.Now()})
	if err != nil {
		return explain(err, server.ErrExists,
			"choose another --name, or add --replace; names of revoked keys cannot be reused")
	}
	return term.Printf(c.OutOrStdout(), "%s\n", key)
}

// replaceKey replaces a key by a new one of the same name, which stays valid for a while.
func replaceKey(c *cobra.Command, s store.Store, name string, grace time.Duration) error {
	key, hash := auth.NewKey()
	now := time.Now()
	err := s.RotateKey(c.Context(), server.Key{Name: name, Hash: hash, Created: now}, now.Add(grace))
	if err != nil {
		return explain(err, server.ErrNotFound, "ccship-server key list shows the names")
	}
	term.Printf(c.ErrOrStderr(), "the old key works until %s\n", stamp(now.Add(grace)))
	return term.Printf(c.OutOrStdout(), "%s\n", key)
}

// errNoUser means that a store has no users.
var errNoUser = errors.New("there is no user yet")

// theUser is the named user, or the only one.
func theUser(ctx context.Context, s store.Store, name string) (server.User, error) {
	if name != "" {
		return findUser(ctx, s, name)
	}
	list, err := s.Users(ctx)
	switch {
	case err != nil:
		return server.User{}, err
	case len(list) == 0:
		return server.User{}, errNoUser
	case len(list) > 1:
		return server.User{}, usageError{hinted{errors.New("--user is missing, and there are several users"),
			"ccship-server user list shows them"}}
	}
	return list[0], nil
}

// firstUser is created with the first key of an empty store.
const firstUser = "owner"

// keyUser is the named user. Without a name it is the only user, and an empty store gets one.
func keyUser(ctx context.Context, s store.Store, name string) (server.User, error) {
	u, err := theUser(ctx, s, name)
	if !errors.Is(err, errNoUser) {
		return u, err
	}
	u, err = s.AddUser(ctx, firstUser, server.Owner, server.By{At: time.Now()})
	if errors.Is(err, server.ErrExists) { // another process was quicker
		return findUser(ctx, s, firstUser)
	}
	return u, err
}

func findUser(ctx context.Context, s store.Store, name string) (server.User, error) {
	u, err := s.FindUser(ctx, name)
	if errors.Is(err, server.ErrNotFound) {
		return u, hinted{fmt.Errorf("there is no user %q", name), "ccship-server user list shows all users"}
	}
	return u, err
}

// userID is a user's number; 0 without a name.
func userID(ctx context.Context, s store.Store, name string) (int64, error) {
	if name == "" {
		return 0, nil
	}
	u, err := findUser(ctx, s, name)
	return u.ID, err
}

func checkName(c *cobra.Command, flag, name string) error {
	if name == "" {
		return usage(c, errors.New(flag+" is missing"))
	}
	if err := auth.CheckAccountName(name); err != nil {
		return usage(c, fmt.Errorf("bad %s: %w", flag, err))
	}
	return nil
}

func (p *cli) newKeyList() *cobra.Command {
	type one struct {
		Name    string     `json:"name"`
		User    string     `json:"user"`
		Created time.Time  `json:"created"`
		Used    *time.Time `json:"last_used"`
		Revoked *time.Time `json:"revoked"`
	}
	var user string
	c := p.listing("List keys by name; the keys themselves are not stored",
		func(c *cobra.Command, s store.Store) (any, [][]any, error) {
			d := struct {
				Schema int   `json:"schema_version"`
				Keys   []one `json:"keys"`
			}{schemaVersion, []one{}}
			table := [][]any{{"NAME", "USER", "CREATED", "LAST USED", "REVOKED"}}
			of, err := userID(c.Context(), s, user)
			if err != nil {
				return nil, nil, err
			}
			keys, err := s.Keys(c.Context(), of)
			for _, k := range keys {
				d.Keys = append(d.Keys, one{k.Name, k.User.Name, k.Created, moment(k.Used), moment(k.Revoked)})
				table = append(table, []any{k.Name, k.User.Name, stamp(k.Created), stamp(k.Used), stamp(k.Revoked)})
			}
			return d, table, err
		})
	c.Flags().StringVar(&user, "user", "", "only keys of this user")
	return c
}

func (p *cli) newKeyRevoke() *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "revoke --name NAME",
		Short: "Revoke a key for good, with all that came from it: keys, logins, links, shares, users",
		Args:  wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if name == "" {
				return usage(c, errors.New("--name is missing"))
			}
			return p.withStore(c, func(s store.Store) error {
				ended, err := s.RevokeKey(c.Context(), name, time.Now())
				if err != nil {
					return explain(err, server.ErrNotFound, "ccship-server key list shows the names")
				}
				return sayRevoked(c.ErrOrStderr(), name, ended)
			})
		},
	}
	c.Flags().StringVar(&name, "name", "", "the key's name")
	return c
}

// sayRevoked says what ended with a key, and what may still be wanted of it.
func sayRevoked(w io.Writer, name string, ended server.Ended) error {
	err := term.Printf(w, "key %q is revoked; with it ended: %s\n", name, ended.String())
	if err == nil && len(ended.Users) > 0 {
		err = term.Printf(w, "hint: what disabled users sent is kept; ccship-server user set NAME --enable "+
			"accepts one again, with a new key\n")
	}
	return err
}

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

func (p *cli) newLink() *cobra.Command {
	var user, base, ttl string
	c := &cobra.Command{
		Use:   "link",
		Short: "Print a one-time address that logs a browser in",
		Args:  wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := auth.ParseTTL(ttl)
			if err != nil {
				return usage(c, fmt.Errorf("bad --ttl: %w", err))
			}
			if base, err = browserURL(base, p.store); err != nil {
				return err
			}
			if _, err := parsePublicURL(base); err != nil {
				return usage(c, fmt.Errorf("bad --public-url: %w", err))
			}
			return p.withStore(c, func(s store.Store) error {
				u, err := linkUser(c, s, user)
				if err != nil {
					return err
				}
				until := time.Now().Add(d)
				ticket, err := auth.New(s, slog.New(slog.DiscardHandler)).NewTicket(c.Context(), u, 0, d)
				if errors.Is(err, auth.ErrUnauthorized) {
					return hinted{fmt.Errorf("user %q is disabled", u.Name), "ccship-server user set " + u.Name + " --enable"}
				}
				if err != nil {
					return err
				}
				term.Printf(c.ErrOrStderr(), "works once, until %s\n", stamp(until))
				return term.Printf(c.OutOrStdout(), "%s\n", auth.TicketURL(base, ticket))
			})
		},
	}
	c.Flags().StringVar(&user, "user", "", "user to log in; optional while there is only one user")
	c.Flags().StringVar(&base, "public-url", "",
		"where the browser reaches the server; without it, the address that the server of the store listens on")
	c.Flags().StringVar(&ttl, "ttl", auth.DefaultTicket.String(), "how long the address is valid, at most 168h")
	return c
}

// linkUser returns the named user, or the only one.
func linkUser(c *cobra.Command, s store.Store, name string) (server.User, error) {
	u, err := theUser(c.Context(), s, name)
	return u, explain(err, errNoUser, "ccship-server key create --name NAME creates the first")
}

// parsePublicURL reads an address that browsers use.
func parsePublicURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not an address such as https://ccship.example.org/base", s)
	}
	return u, nil
}
