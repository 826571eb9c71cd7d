package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
)

func (p *cli) newThaw() *cobra.Command {
	var since, until string
	c := &cobra.Command{
		Use:   "thaw",
		Short: "Bring lines back from cold storage into the database",
		Long: "Bring lines back from cold storage into the database: of all sessions, or of those whose last " +
			"lines came in a time. It may be interrupted and started again while servers run; give them a longer " +
			"--cold-after before. Attachments stay.",
		Args: wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			from, to, err := daysOf(since, until)
			if err != nil {
				return usageError{err}
			}
			return p.withStore(c, func(s store.Store) error {
				progress := newProgress(c.ErrOrStderr())
				done, err := s.Return(c.Context(), from, to, func(r server.Returned) {
					progress.say("%s brought back", amount.Size(r.Bytes))
				})
				if err != nil {
					return err
				}
				return p.sayReturned(c, done)
			})
		},
	}
	c.Flags().StringVar(&since, "since", "",
		"only sessions whose last lines came on this `DAY` or later, as 2026-01-31, in UTC")
	c.Flags().StringVar(&until, "until", "", "only sessions whose last lines came before this `DAY`")
	printsJSON(c)
	return c
}

// daysOf returns the times at which two days begin; without a day there is no bound.
func daysOf(since, until string) (from, to time.Time, err error) {
	from, to = time.Unix(0, 0), time.Now().Add(24*time.Hour)
	for _, x := range []struct {
		flag, day string
		to        *time.Time
	}{{"--since", since, &from}, {"--until", until, &to}} {
		if x.day == "" {
			continue
		}
		if *x.to, err = time.Parse(time.DateOnly, x.day); err != nil {
			return from, to, fmt.Errorf("%s %q is no day; want one as 2026-01-31", x.flag, x.day)
		}
	}
	return from, to, nil
}

func (p *cli) sayReturned(c *cobra.Command, r server.Returned) (err error) {
	if p.json {
		err = printJSON(c.OutOrStdout(), struct {
			Schema  int   `json:"schema_version"`
			Objects int64 `json:"objects"`
			Bytes   int64 `json:"bytes"`
			Damaged int64 `json:"damaged"`
		}{schemaVersion, r.Objects, r.Bytes, r.Damaged})
	} else {
		err = term.Printf(c.OutOrStdout(), "%s brought back into the database, %s\n",
			amount.Counted(r.Objects, "object", "objects"), amount.Size(r.Bytes))
	}
	if err == nil && r.Damaged > 0 {
		err = hinted{fmt.Errorf("%s lost or damaged", amount.Counted(r.Damaged, "object is", "objects are")),
			"ccship-server verify names their lines; ccship verify --deep --repair on the clients sends them again"}
	}
	return err
}
