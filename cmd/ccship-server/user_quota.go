package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
)

func newUserQuota() *cobra.Command {
	var url, bytes, sessions string
	var asJSON bool
	c := &cobra.Command{
		Use:   "quota NAME",
		Short: "Show what is stored of a user, and set how much may be",
		Example: `  ccship-server user quota ann
  ccship-server user quota ann --bytes 10GiB --sessions 5000
  ccship-server user quota ann --bytes none --sessions default`,
		Args: wrapArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return withStore(c, url, func(s store.Store) error {
				u, err := findUser(c.Context(), s, args[0])
				if err != nil {
					return err
				}
				if u.Quota, err = changedQuota(c, u.Quota, bytes, sessions); err != nil {
					return err
				}
				if c.Flags().Changed("bytes") || c.Flags().Changed("sessions") {
					if err := s.SetQuota(c.Context(), u.ID, u.Quota); err != nil {
						return err
					}
				}
				return showQuota(c, s, u, asJSON)
			})
		},
	}
	const values = ", default (the limit of serve) or none"
	c.Flags().StringVar(&bytes, "bytes", "", "bytes that may be stored: a size such as 10GiB"+values)
	c.Flags().StringVar(&sessions, "sessions", "", "sessions that may be stored: a number"+values)
	jsonFlag(c, &asJSON)
	storeFlag(c, &url)
	return c
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

func showQuota(c *cobra.Command, s store.Store, u server.User, asJSON bool) error {
	has, err := s.Stored(c.Context(), u.ID)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(c.OutOrStdout(), struct {
			Schema   int    `json:"schema_version"`
			User     string `json:"user"`
			Bytes    int64  `json:"stored_bytes"`
			Sessions int64  `json:"stored_sessions"`
			Quota    struct {
				Bytes    string `json:"bytes"`
				Sessions string `json:"sessions"`
			} `json:"quota"`
		}{schemaVersion, u.Name, has.Bytes, has.Sessions, struct {
			Bytes    string `json:"bytes"`
			Sessions string `json:"sessions"`
		}{limitText(u.Quota.Bytes, amount.ExactSize), limitText(u.Quota.Sessions, plain)}})
	}
	_, err = term.Printf(c.OutOrStdout(), "bytes     %s stored, limit: %s\nsessions  %d stored, limit: %s\n",
		amount.Size(has.Bytes), limitText(u.Quota.Bytes, amount.ExactSize), has.Sessions, limitText(u.Quota.Sessions, plain))
	return err
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
