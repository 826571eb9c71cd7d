package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/server/store"
)

func newKeyList() *cobra.Command {
	var url string
	c := &cobra.Command{
		Use:   "list",
		Short: "List the keys' names, not the keys: only their hashes are kept",
		Args:  wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return withStore(c, url, func(s *store.SQLite) error {
				keys, err := s.Keys(c.Context())
				if err != nil {
					return err
				}
				w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
				fmt.Fprintln(w, "NAME\tCREATED\tLAST USED\tREVOKED")
				for _, k := range keys {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", k.Name, stamp(k.Created), stamp(k.Used), stamp(k.Revoked))
				}
				return w.Flush()
			})
		},
	}
	storeFlag(c, &url)
	return c
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.RFC3339)
}
