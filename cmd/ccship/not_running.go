package main

import (
	"context"
	"errors"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/service"
)

// managerTime is how long the service manager may take to say whether there is a service.
const managerTime = 2 * time.Second

// withStart is err, which may be nil, with the command that starts the daemon where it is an installed service.
func (a *app) withStart(ctx context.Context, err error) error {
	var known *control.Error
	if !errors.As(err, &known) || known.Code != control.CodeNotRunning || a.Given()["socket"] != "" {
		return err
	}
	if hint := startHint(ctx); hint != "" {
		said := *known
		said.Hint = hint
		return &said
	}
	return err
}

// startHint returns how an installed service is made to answer; "" when there is none, or nobody can tell.
func startHint(ctx context.Context) string {
	program, err := service.OwnPath()
	if err != nil {
		return ""
	}
	s, err := service.New(service.Options{Program: service.Daemon, Binary: program})
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), managerTime)
	defer cancel()
	switch st, err := s.Status(ctx); {
	case err != nil || !st.Installed:
		return ""
	case st.Running:
		return "the service runs, but its daemon does not answer: `ccship service logs` says why, " +
			"`ccship service restart` starts it again"
	}
	return "the service is stopped: start it with `ccship service start`"
}
