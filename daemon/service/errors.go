package service

import (
	"context"
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

var (
	noManager = control.Error{
		Code: CodeNoManager, Message: "there is no service manager here: this system was not started with systemd",
		Hint: "`ccship run` runs the daemon in the foreground; start it with whatever starts other programs here",
	}
	notInstalled = control.Error{
		Code: CodeNotInstalled, Message: "ccship is not installed as a service",
		Hint: "`ccship install` installs and starts it",
	}
	noSystem = control.Error{Code: control.CodeUsage, Message: "--system is for systemd only", Hint: "leave it out"}
)

// nobody is the manager of systems without a known one.
type nobody struct{}

func (nobody) status(context.Context) (Status, error) {
	return Status{Manager: None, Note: noManager.Message}, nil
}
func (nobody) install(context.Context, bool) (Outcome, error) { return Outcome{}, &noManager }
func (nobody) uninstall(context.Context) (Removal, error)     { return Removal{}, nil }
func (nobody) start(context.Context) error                    { return &noManager }
func (nobody) stop(context.Context) error                     { return &noManager }
func (nobody) restart(context.Context) error                  { return &noManager }
func (nobody) logs(int, bool) []string                        { return nil }

// failed is the error of a step that a manager could not do.
func failed(what string, err error, hint string) error {
	return control.Failed(what+": "+strings.Join(strings.Fields(err.Error()), " "), hint)
}
