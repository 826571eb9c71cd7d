package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/store"
)

const (
	sweepEvery = 6 * time.Hour    // between two searches for abandoned uploads
	sealEvery  = 30 * time.Second // how long it takes until lines that fill a block are packed
	sealIdle   = 10 * time.Minute // how long a transcript must not grow until all of it is packed
	sumEvery   = 30 * time.Second // how often what changed is put into sums; until then each reader adds it
	retireLook = 10 * time.Minute // the longest time between two looks whether rules of retention are due
	coolLook   = 10 * time.Minute // the longest time between two looks for what became old
	removeLook = time.Minute      // how long it takes at most until what was forgotten is removed from cold storage
)

// upkeep has a store do what it needs now and then while a server runs. Several servers on one store may each do so.
type upkeep struct {
	store store.Store
	log   *slog.Logger
}

// chores returns what upkeep does, each until its context is done. retention is how long the rules of retention rest
// between two applications, cold the age of what is moved to cold storage; 0: nothing does it.
func (u upkeep) chores(retention, cold time.Duration) []func(context.Context) error {
	chores := []func(context.Context) error{
		u.every(sweepEvery, "remove abandoned uploads", u.sweep),
		u.every(sealEvery, "pack stored lines", u.seal),
		u.every(sumEvery, "sum up; answers are right but slow", u.sum),
	}
	if retention > 0 {
		chores = append(chores, u.every(min(retireLook, max(retention/4, 100*time.Millisecond)),
			"apply the rules of retention", func(ctx context.Context) error { return u.retire(ctx, retention) }))
	}
	look, pause := min(coolLook, max(cold/10, time.Second)), removeLook // a small part of the age
	if cold > 0 {
		pause = min(pause, look)
	}
	var looked time.Time
	return append(chores, u.every(pause, "use cold storage", func(ctx context.Context) error {
		err := u.store.Sweep(ctx)
		if err == nil && cold > 0 && time.Since(looked) >= look {
			looked = time.Now()
			err = u.cool(ctx, cold)
		}
		return err
	}))
}

// every returns what does a chore at once, and then at intervals until its context is done. It logs failures, the same
// one once.
func (u upkeep) every(interval time.Duration, what string, chore func(context.Context) error) func(
	context.Context) error {
	return func(ctx context.Context) error {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		said := ""
		for {
			err := chore(ctx)
			switch {
			case ctx.Err() != nil:
				return nil
			case err == nil:
				said = ""
			case err.Error() != said:
				said = err.Error()
				u.log.Warn("cannot "+what+"; it is tried again, and nothing is lost", "err", err)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	}
}

// sweep removes uploads that were started and abandoned.
func (u upkeep) sweep(ctx context.Context) error {
	n, err := u.store.SweepBlobs(ctx, time.Now().Add(-server.BlobPatience))
	if n > 0 {
		u.log.Info("abandoned uploads removed", "uploads", n)
	}
	return err
}

// seal packs lines that came alive.
func (u upkeep) seal(ctx context.Context) error {
	n, err := u.store.Seal(ctx, time.Now().Add(-sealIdle))
	if n > 0 {
		u.log.Debug("packed stored lines", "blocks", n)
	}
	return err
}

// sum puts what changed into sums. Of several servers on one store one does it at a time.
func (u upkeep) sum(ctx context.Context) error {
	more, err := true, error(nil)
	for more && err == nil && ctx.Err() == nil {
		more, err = u.store.SumUp(ctx)
	}
	return err
}

// retire applies the rules of retention if they are due. Of several servers on one store one does it. What is
// interrupted goes on at the next look.
func (u upkeep) retire(ctx context.Context, every time.Duration) error {
	done, err := u.store.Retire(ctx, server.RetireOptions{By: "ccship-server", Now: time.Now(), Every: every})
	for _, n := range done.Counts {
		u.log.Info("rule of retention applied", "rule", n.Rule, "user", n.User, "sessions", n.Sessions, "lines", n.Lines,
			"files", n.Files, "bytes", n.Bytes)
	}
	return err
}

// cool moves what is older than an age to cold storage.
func (u upkeep) cool(ctx context.Context, age time.Duration) error {
	done, err := u.store.Cool(ctx, time.Now().Add(-age))
	if done.Objects > 0 {
		u.log.Info("moved to cold storage", "objects", done.Objects, "bytes", done.Bytes)
	}
	return err
}

func (p *cli) newRebuild() *cobra.Command {
	c := &cobra.Command{
		Use:   "rebuild",
		Short: "Derive titles, messages, usage and search text again from the stored lines",
		Long: "Derive titles, messages, usage and search text again from the stored lines. Servers can keep " +
			"running; until it is done, searches miss sessions.",
		Args: wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withStore(c, func(s store.Store) error {
				if err := s.ResetDerived(c.Context()); err != nil {
					return err
				}
				began := time.Now()
				all, err := s.Lag(c.Context())
				if err != nil {
					return err
				}
				if err := deriveAll(c.Context(), s, all, newProgress(c.ErrOrStderr())); err != nil {
					return err
				}
				took := time.Since(began).Round(time.Millisecond)
				return term.Printf(c.ErrOrStderr(), "%d transcripts derived in %v\n", all, took)
			})
		},
	}
	return c
}

// lagEvery is the time between two looks at what is left.
const lagEvery = 200 * time.Millisecond

// deriveAll derives until nothing is left.
func deriveAll(ctx context.Context, s store.Store, all int64, p *progress) error {
	done := errors.New("done")
	err := together(ctx,
		(&derive.Deriver{Store: s, Log: slog.New(slog.DiscardHandler)}).Run,
		func(ctx context.Context) error {
			tick := time.NewTicker(lagEvery)
			defer tick.Stop()
			for {
				left, err := s.Lag(ctx)
				if err != nil {
					return err
				}
				if left == 0 {
					return done
				}
				p.say("%d of %d transcripts", max(0, all-left), all)
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-tick.C:
				}
			}
		})
	if errors.Is(err, done) {
		return nil
	}
	return err
}

// coldPatience is how long status waits for what is asked of a store.
const coldPatience = 20 * time.Second

// coldReport is what status says of cold storage, and of what could go there.
type coldReport struct {
	Place    string     `json:"place,omitempty"`
	Objects  int64      `json:"objects"`
	Bytes    int64      `json:"bytes"`
	Pending  int64      `json:"pending"`              // objects that are being written, or still to be removed
	Left     int64      `json:"sessions_left"`        // transcripts of which something could be moved
	Since    *time.Time `json:"left_since,omitempty"` // when the one that rests longest got its last lines
	Unpacked int64      `json:"unpacked_lines"`       // which are not packed, so they can't be moved yet
	Oldest   *time.Time `json:"oldest_unpacked,omitempty"`
	Problem  string     `json:"problem,omitempty"`
}

// examineCold looks into a store; nil: it has no cold storage, or is none yet.
func examineCold(ctx context.Context, url string) *coldReport {
	ctx, cancel := context.WithTimeout(ctx, coldPatience)
	defer cancel()
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		if _, err := os.Stat(strings.TrimPrefix(path, "//")); err != nil {
			return nil // opening it would make it
		}
	}
	st, err := openStore(ctx, url, store.Opening{AsIs: true})
	if errors.Is(err, store.ErrOutdated) {
		return nil
	}
	if err != nil {
		return &coldReport{Problem: err.Error()}
	}
	cold, err := st.Cold(ctx)
	var warm server.Warm
	if err == nil && cold.Place != "" {
		warm, err = st.Warm(ctx)
	}
	if err = errors.Join(err, st.Close()); err != nil {
		return &coldReport{Place: redact(cold.Place), Problem: err.Error()}
	}
	if cold.Place == "" {
		return nil
	}
	return &coldReport{Place: redact(cold.Place), Objects: cold.Objects, Bytes: cold.Bytes, Pending: cold.Pending,
		Left: warm.Streams, Since: moment(warm.Since), Unpacked: warm.Lines, Oldest: moment(warm.Oldest)}
}

func (r *coldReport) print(w io.Writer) error {
	if r.Problem != "" {
		return term.Printf(w, "cold     cannot be looked at: %s\n", r.Problem)
	}
	ago := func(t *time.Time, what string) string {
		if t == nil {
			return ""
		}
		return fmt.Sprintf(", %s %s", what, amount.Ago(time.Now(), *t))
	}
	term.Printf(w, "cold     %s, %s in %s", r.Place, amount.Size(r.Bytes), amount.Counted(r.Objects, "object", "objects"))
	if r.Pending > 0 {
		term.Printf(w, " (%d being written or removed)", r.Pending)
	}
	return term.Printf(w, "\nnot cold %s%s; %s not packed yet%s\n",
		amount.Counted(r.Left, "transcript", "transcripts"), ago(r.Since, "the oldest got its last lines"),
		amount.Counted(r.Unpacked, "line", "lines"), ago(r.Oldest, "the oldest came"))
}

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
