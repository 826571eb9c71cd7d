package service

import (
	"context"
	"errors"
	"fmt"

	kardianos "github.com/kardianos/service"

	"github.com/ccship/ccship/daemon/control"
)

// scm is Windows' service manager. The service runs under the system's account, which may read every user's files; its
// configuration file says which user's to deliver.
type scm struct {
	o   Options
	lib interface {
		installer
		Status() (kardianos.Status, error)
	}
}

func newSCM(o Options) (manager, error) {
	if o.Program.Name != Daemon.Name { // only the daemon answers to this manager, see Host
		return nobody{o.Program}, nil
	}
	for _, system := range kardianos.AvailableSystems() {
		if system.String() != "windows-service" {
			continue
		}
		lib, err := system.New(hosted{}, &kardianos.Config{
			Name: o.Program.Name, DisplayName: o.Program.Name,
			Description: "Delivers Claude Code's conversations to your server",
			Executable:  o.Binary, Arguments: o.Args,
			Option: kardianos.KeyValue{"OnFailure": "restart", "OnFailureDelayDuration": "5s", "DelayedAutoStart": true},
		})
		if err != nil {
			return nil, failed("find service manager", err, "`ccship run` runs the daemon in the foreground")
		}
		return &scm{o, lib}, nil
	}
	return nobody{o.Program}, nil
}

func (s *scm) Status(context.Context) (Status, error) {
	st := Status{Manager: Windows}
	status, err := s.lib.Status()
	if errors.Is(err, kardianos.ErrNotInstalled) {
		return st, nil
	}
	if err != nil {
		return st, failed("ask service manager", err, "`sc query ccship` shows its state")
	}
	st.Installed, st.Enabled, st.Running = true, true, status == kardianos.StatusRunning
	return st, nil
}

// install first removes an older service, because the library refuses to change one.
func (s *scm) Install(ctx context.Context, start bool) (Outcome, error) {
	var out Outcome
	if _, err := s.Uninstall(ctx); err != nil {
		return out, err
	}
	if err := s.lib.Install(); err != nil {
		return out, s.refused("install service", err)
	}
	out.Written = true
	if !start {
		return out, nil
	}
	out.Started = true
	return out, s.Start(ctx)
}

func (s *scm) Uninstall(ctx context.Context) (Removal, error) {
	st, err := s.Status(ctx)
	if err != nil || !st.Installed {
		return Removal{}, err
	}
	if st.Running {
		if err := s.lib.Stop(); err != nil {
			return Removal{}, s.refused("stop service", err)
		}
	}
	if err := s.lib.Uninstall(); err != nil {
		return Removal{}, s.refused("remove service", err)
	}
	return Removal{Was: true}, nil
}

func (s *scm) Start(ctx context.Context) error {
	return s.control(ctx, "start service", installer.Start)
}

func (s *scm) Stop(ctx context.Context) error { return s.control(ctx, "stop service", installer.Stop) }

func (s *scm) Restart(ctx context.Context) error {
	return s.control(ctx, "restart service", installer.Restart)
}

func (s *scm) control(ctx context.Context, what string, do func(installer) error) error {
	st, err := s.Status(ctx)
	if err != nil {
		return err
	}
	if !st.Installed {
		return s.o.Program.notInstalled()
	}
	if err := do(s.lib); err != nil {
		return s.refused(what, err)
	}
	return nil
}

func (s *scm) refused(what string, err error) error {
	return control.Failed(fmt.Sprintf("%s: %v", what, err),
		"run the command in a terminal that was started as administrator")
}

func (s *scm) logs(n int, follow bool) []string { return getContent(n, follow, s.o.LogFile) }
