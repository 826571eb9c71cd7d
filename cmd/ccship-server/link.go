package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/store"
)

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
