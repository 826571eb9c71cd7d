package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/setup"
	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/doctor"
	"github.com/ccship/ccship/internal/service"
)

func (a *app) doctorCommand() *cobra.Command {
	var fix bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check everything that can go wrong, and say how to fix it",
		Long: "Check the daemon, its service and configuration, the server, and what Claude Code is about to " +
			"delete. Exit 0 when no check fails, even with warnings; 1 when one fails.\n\nWith --fix, first fix " +
			"what is safe to fix.",
		Args: cobra.NoArgs,
		RunE: show.Interruptible(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			return a.doctor(ctx, fix)
		}),
	}
	cmd.Flags().BoolVar(&fix, "fix", false, "fix what is safe to fix, and say what was done")
	a.AddJSON(cmd)
	return cmd
}

// mostRounds limits the rounds of fixing: a daemon that one round starts may report more to fix in the next.
const mostRounds = 3

// doctor examines; with fix it applies fixes and examines again.
func (a *app) doctor(ctx context.Context, fix bool) error {
	options, err := a.doctorOptions()
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
		if options, err = a.doctorOptions(); err != nil { // a fix may have changed them
			return err
		}
		report = doctor.Examine(ctx, options)
	}
	report.Fixes = fixes
	if ctx.Err() != nil {
		return ctx.Err()
	}
	err = show.Answer(&a.App, report, nil, func(r doctor.Report) string { return a.View().Doctor(r, fix) })
	if err == nil && !report.OK {
		return show.SilentError{Code: show.ExitFailed}
	}
	return err
}

// soon is how many days ahead the doctor looks for what Claude Code will delete.
const soon = 7

// doctorOptions say what is examined. A mistake in the configuration is one of the doctor's findings.
func (a *app) doctorOptions() (doctor.Options, error) {
	o := doctor.Options{Version: a.Version, Days: soon}
	var err error
	if o.Program, err = service.OwnPath(); err != nil {
		return o, err
	}
	if o.Config, o.ConfigErr = a.SalvagedConfig(); o.Config.Path == "" {
		return o, o.ConfigErr
	}
	o.Sockets = show.Sockets(o.Config)
	if o.Config.OriginOf("socket") == config.FromDefault {
		o.ForeignSocket = show.UpSocket(o.Config)
	}
	if o.ConfigErr != nil {
		o.Service, err = service.New(service.Options{Program: service.Daemon, Binary: o.Program}) // to look only
		return o, err
	}
	t, err := setup.OwnService(&a.App)
	if err != nil {
		return o, err
	}
	o.Service = t
	return o, nil
}
