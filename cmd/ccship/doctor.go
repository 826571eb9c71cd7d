package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/cli"
	"github.com/ccship/ccship/cmd/ccship/setup"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/doctor"
	"github.com/ccship/ccship/daemon/service"
)

func (a *app) doctorCommand() *cobra.Command {
	var fix bool
	var days int
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check everything that can go wrong, and say how to fix it",
		Long: "Check service, daemon, socket, state, configuration, key, folders, clock, server and outbox, and what " +
			"Claude Code is about to delete, in less than three seconds. With --fix, fix first what is safe to fix: " +
			"permissions, a stale socket, an outdated unit, a stopped service, queued lines. " +
			"Exits 0 when no check fails, even with warnings; 1 when one fails.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if days < 0 || days > 3650 {
				return control.Usage("--days must be from 0 to 3650", "7 is a week")
			}
			ctx, stop := cli.UntilSignal(cmd.Context())
			defer stop()
			return a.doctor(ctx, fix, days)
		},
	}
	cmd.Flags().BoolVar(&fix, "fix", false, "fix what is safe to fix, and say what was done")
	cmd.Flags().IntVar(&days, "days", 7, "warn about what Claude Code will delete within this many `days`")
	a.AddJSON(cmd)
	return cmd
}

// mostRounds limits the rounds of fixing: a daemon that one round starts may report more to fix in the next.
const mostRounds = 3

// doctor examines; with fix it applies fixes and examines again.
func (a *app) doctor(ctx context.Context, fix bool, days int) error {
	options, err := a.doctorOptions(days)
	if err != nil {
		return err
	}
	report := doctor.Examine(ctx, options)
	var fixes []doctor.Fix
	for round := 0; fix && round < mostRounds && ctx.Err() == nil; round++ {
		more := doctor.ApplyFixes(ctx, report, fixes...)
		if len(more) == 0 {
			break
		}
		fixes = append(fixes, more...)
		if options, err = a.doctorOptions(days); err != nil { // a fix may have changed them
			return err
		}
		report = doctor.Examine(ctx, options)
	}
	report.Fixes = fixes
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if a.JSON {
		err = a.PrintJSON(report)
	} else {
		err = a.Print(a.View().Doctor(report, fix))
	}
	if err == nil && !report.OK {
		return cli.SilentError{Code: cli.ExitFailed}
	}
	return err
}

// doctorOptions say what is examined. A mistake in the configuration is one of the doctor's findings.
func (a *app) doctorOptions(days int) (doctor.Options, error) {
	o := doctor.Options{Version: a.Version, Days: days}
	var err error
	if o.Program, err = cli.OwnPath(); err != nil {
		return o, err
	}
	if o.Config, o.ConfigErr = a.SalvagedConfig(); o.Config.Path == "" {
		return o, o.ConfigErr
	}
	o.Sockets = cli.Sockets(o.Config)
	if o.Config.OriginOf("socket") == config.FromDefault {
		o.ForeignSocket = cli.UpSocket(o.Config)
	}
	if o.ConfigErr != nil {
		o.Service, err = service.New(service.Options{Binary: o.Program}) // to look only
		return o, err
	}
	t, err := setup.OwnService(&a.App)
	if err != nil {
		return o, err
	}
	o.Service = t
	return o, nil
}
