package service

import (
	"context"
	"runtime"
	"strings"

	"github.com/ccship/ccship/daemon/control"
)

// Codes of the errors of this package.
const (
	CodeNoManager    = "no_service_manager"
	CodeNoSession    = "no_user_session"
	CodeNotInstalled = "not_installed"
	CodeNotStarted   = "not_started"
	CodeNeedsRoot    = "needs_root"
)

// noManager returns the error where nothing can run a program as a service.
func (p Program) noManager() *control.Error {
	why := "this system was not started with systemd"
	if runtime.GOOS != "linux" {
		why = p.Name + " knows none on " + runtime.GOOS
	}
	return control.NewError(CodeNoManager, "there is no service manager here: "+why,
		"`"+p.foreground+"` runs "+p.what+" in the foreground; have it started at boot, by cron's @reboot or a "+
			"container's start command")
}

func (p Program) notInstalled() *control.Error {
	return control.NewError(CodeNotInstalled, p.Name+" is not installed as a service",
		"`"+p.install+"` installs and starts it")
}

var noSystem = control.Error{Code: control.CodeUsage, Message: "--system is for systemd only", Hint: "leave it out"}

// nobody is the manager of systems without a known one.
type nobody struct{ Program }

func (n nobody) Status(context.Context) (Status, error) {
	return Status{Manager: None, Note: n.noManager().Message}, nil
}
func (n nobody) Install(context.Context, bool) (Outcome, error) { return Outcome{}, n.noManager() }
func (n nobody) Uninstall(context.Context) (Removal, error)     { return Removal{}, nil }
func (n nobody) Start(context.Context) error                    { return n.noManager() }
func (n nobody) Stop(context.Context) error                     { return n.noManager() }
func (n nobody) Restart(context.Context) error                  { return n.noManager() }
func (n nobody) logs(int, bool) []string                        { return nil }

// failed is the error of a step that a manager could not do.
func failed(what string, err error, hint string) error {
	return control.Failed(what+": "+strings.Join(strings.Fields(err.Error()), " "), hint)
}
