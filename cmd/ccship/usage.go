package main

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/transcript"
)

// usageOptions are the flags of `ccship usage`.
type usageOptions struct {
	by           []string
	since, until string
	offline      bool
}

// usageReport is what `usage --json` prints.
type usageReport struct {
	SchemaVersion int `json:"schema_version"`
	library.Report
	// Incomplete says why the server could not be asked; then the sums are of this machine's disk.
	Incomplete *control.Error `json:"incomplete,omitempty"`
}

func (a *app) usageCommand() *cobra.Command {
	var o usageOptions
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Sum tokens and what they cost, by day, project, model, machine or session",
		Long: "Sum the tokens that Claude's responses used. A response counts once, also if a fork or a resumed " +
			"session repeats it; agents count too. Costs are list prices in US dollars: – is a model without a " +
			"known price, + a sum that leaves out such a model.\n\nThe sums are those of your sessions on the " +
			"server, from all machines. Without a server, or with --offline, those of the transcripts on this disk. " +
			"If the server does not answer, the disk is summed and the exit code says why.",
		Example: "  ccship usage --since 30d\n  ccship usage --by project,model\n" +
			"  ccship usage --by session --since 2026-11-20 --until 2026-11-20",
		Args: cobra.NoArgs,
		RunE: show.Interruptible(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			q, err := o.query(time.Now())
			if err != nil {
				return err
			}
			return a.usage(ctx, o, q)
		}),
	}
	cmd.Flags().StringSliceVar(&o.by, "by", []string{library.Day},
		"`columns` to sum by, separated by commas: "+strings.Join(library.Columns(), ", "))
	cmd.Flags().StringVar(&o.since, "since", "", "only responses since then: 2026-11-01, 36h or 7d")
	cmd.Flags().StringVar(&o.until, "until", "", "only responses until then; a day is included")
	cmd.Flags().BoolVar(&o.offline, "offline", false, "sum the transcripts on this disk, not those on the server")
	a.AddJSON(cmd)
	complete := cobra.FixedCompletions(library.Columns(), cobra.ShellCompDirectiveNoFileComp)
	_ = cmd.RegisterFlagCompletionFunc("by", complete) // the flag exists
	return cmd
}

// query is what the flags ask for.
func (o usageOptions) query(now time.Time) (q library.Query, err error) {
	for _, by := range o.by {
		by = strings.TrimSpace(by)
		if err := oneOf("--by", by, library.Columns()); err != nil {
			return q, err
		}
		if !slices.Contains(q.By, by) {
			q.By = append(q.By, by)
		}
	}
	if q.Since, err = show.Since(o.since, now); err != nil {
		return q, err
	}
	if q.Until, err = show.Until(o.until, now); err != nil {
		return q, err
	}
	if !q.Until.IsZero() && !q.Since.Before(q.Until) {
		return q, control.Usage("--until is not after --since", "choose a later end")
	}
	q.Zone = time.Local
	return q, nil
}

// usage prints the sums of the server, or else of the disk.
func (a *app) usage(ctx context.Context, o usageOptions, q library.Query) error {
	l, err := a.library(ctx)
	if err != nil {
		return err
	}
	doc := usageReport{SchemaVersion: control.SchemaVersion}
	var trouble error
	if l.Server != nil && !o.offline {
		doc.Report, trouble = library.Server(ctx, l.Server, q)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if l.Server == nil || o.offline || trouble != nil {
		if doc.Report, err = a.usageOnDisk(ctx, l, q); err != nil {
			return err
		}
	}
	if trouble != nil {
		doc.Incomplete = show.Describe(trouble)
	}
	if err := a.printUsage(doc); err != nil || trouble == nil {
		return err
	}
	return show.SilentError{Code: show.ExitCode(doc.Incomplete)}
}

// usageOnDisk sums what is on disk, with a bar while it reads.
func (a *app) usageOnDisk(ctx context.Context, l *library.Library, q library.Query) (library.Report, error) {
	c, err := a.Config()
	if err != nil {
		return library.Report{}, err
	}
	prices, err := priceList(c)
	if err != nil {
		return library.Report{}, err
	}
	host, _ := os.Hostname() // only the machine's name is shown without it
	bar := term.NewBar(a.Stderr, "reading")
	defer bar.Clear()
	finder := project.NewFinder()
	finder.Home = c.Home()
	ids := map[string]string{} // of repositories, by their .git
	var drawn time.Time
	disk := library.UsageDisk{
		Roots: l.Roots, Machine: l.Machine, Host: host, Prices: prices,
		Project: func(cwd, folder string) (hash, repository string) {
			policy, _ := finder.Find(cwd) // what it says of delivery does not matter here
			hash = project.Hash(cwd, folder, policy, c.TrustedProjects)
			if policy.Remote != "" || hash == policy.ProjectHash {
				return hash, policy.Top()
			}
			if _, known := ids[policy.GitDir]; !known && policy.GitDir != "" {
				if r, err := project.ReadRepository(ctx, policy.GitDir); err == nil {
					ids[policy.GitDir] = r.ID()
				}
			}
			return cmp.Or(ids[policy.GitDir], project.SameFolder(cwd, policy), hash), policy.Top()
		},
		Progress: func(done, total int64) {
			if time.Since(drawn) > 100*time.Millisecond {
				bar.Set(done, total)
				drawn = time.Now()
			}
		},
	}
	return disk.Sum(ctx, q)
}

// priceList is the list that the configuration names.
func priceList(c config.Config) (*transcript.Prices, error) {
	if c.Prices == "" {
		return transcript.DefaultPrices(), nil
	}
	file, err := os.Open(c.Prices)
	if err == nil {
		defer file.Close()
		var list *transcript.Prices
		if list, err = transcript.ReadPrices(file); err == nil {
			return list, nil
		}
	}
	return nil, &config.Error{Message: "prices: " + c.Prices + ": " + err.Error(),
		Hint: "correct the file; `ccship config prices ''` brings the built-in list back"}
}

// printUsage prints a report, and what was left out of it.
func (a *app) printUsage(doc usageReport) error {
	if a.JSON {
		return a.PrintJSON(doc)
	}
	if err := a.Print(a.View().Usage(doc.Report)); err != nil {
		return err
	}
	if doc.Incomplete != nil {
		show.PrintError(a.Stderr, doc.Incomplete)
		a.Say("these are the sums of this machine's disk")
	}
	if doc.Skipped > 0 {
		a.Say("%s skipped:", amount.Counted(doc.Skipped, "line was", "lines were"))
	}
	for _, f := range doc.Faults {
		a.Say("%s", show.UsageFault(f))
	}
	return nil
}
