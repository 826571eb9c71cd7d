package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/setup"
	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/doctor"
	"github.com/ccship/ccship/internal/service"
)

func (a *app) doctorCommand() *cobra.Command {
	var fix bool
	var report string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check everything that can go wrong, and say how to fix it",
		Long: "Check the daemon, its service and configuration, the server, and what Claude Code is about to " +
			"delete. Exit 0 when no check fails, even with warnings; 1 when one fails.\n\nWith --fix, first fix " +
			"what is safe to fix. With --bundle, write an archive for a report of a problem: versions, " +
			"configuration, checks, status, metrics and log, without conversations, keys, and names of people, " +
			"machines, servers, projects and folders.",
		Args: cobra.NoArgs,
		RunE: show.Interruptible(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			if report != "" {
				return a.bundle(ctx, report)
			}
			return a.doctor(ctx, fix)
		}),
	}
	cmd.Flags().BoolVar(&fix, "fix", false, "fix what is safe to fix, and say what was done")
	cmd.Flags().StringVar(&report, "bundle", "", "write an archive for a report of a problem into this `file`")
	cmd.Flags().Lookup("bundle").NoOptDefVal = folder + ".tar.gz"
	cmd.MarkFlagsMutuallyExclusive("bundle", "fix")
	a.AddJSON(cmd)
	return cmd
}

// bundle writes the archive. What cannot be had is said in it: a report is wanted most when something fails.
func (a *app) bundle(ctx context.Context, file string) error {
	options, err := a.doctorOptions()
	if options.Config.Path == "" {
		return err
	}
	c, checks := options.Config, ""
	if err == nil {
		checks = document(doctor.Examine(ctx, options))
	}
	user, machine := os.Getenv("USER"), ""
	if name, err := os.Hostname(); err == nil {
		machine = name
	}
	home, _ := os.UserHomeDir() // without one there is nothing to hide
	var values strings.Builder
	for _, v := range c.Values() {
		fmt.Fprintf(&values, "%s # %s\n", v.TOML(), v.Origin)
	}
	parts := []part{
		{Name: "version.json", Text: document(a.build)},
		{Name: "config.toml", Text: values.String(), Err: options.ConfigErr},
		{Name: "doctor.json", Text: checks, Err: err},
	}
	client, status, err := control.Reach(ctx, show.Sockets(c))
	metrics, now := "", ""
	servers := []string{c.ServerURL}
	if err == nil {
		now = document(status)
		metrics, err = control.MetricsOf(ctx, client)
		for _, s := range status.Servers {
			servers = append(servers, s.URL)
		}
	}
	log, logErr := setup.Log(ctx, &a.App, logLines)
	parts = append(parts, part{Name: "status.json", Text: now, Err: err},
		part{Name: "metrics.txt", Text: metrics, Err: err}, part{Name: "log.txt", Text: log, Err: logErr})
	contents, err := write(file, time.Now(), newNames(home, user, machine, servers), parts...)
	if errors.Is(err, os.ErrExist) {
		return control.Usage(file+" exists", "name another file with --bundle=FILE, or remove that one")
	}
	if err != nil {
		return control.Failed(err.Error(), "name a file that can be written with --bundle=FILE")
	}
	a.Say("%s holds, without conversations, keys and names:", file)
	for _, line := range contents {
		a.Say("  %s", line)
	}
	a.Say("look through it before you send it: tar -xzOf %s | less", file)
	return nil
}

// logLines is how much of the log goes into an archive.
const logLines = 2000

// document returns a value as JSON with indents, "" if there is none.
func document(v any) string {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text) + "\n"
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
	if a.JSON {
		err = a.PrintJSON(report)
	} else {
		err = a.Print(a.View().Doctor(report, fix))
	}
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
