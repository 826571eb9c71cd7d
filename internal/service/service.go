// Package service makes ccship and ccship-server services of the operating system: it installs, starts, stops and
// describes them, with systemd (a user's own manager, or the system's), launchd, or Windows' service manager. Package
// packaging provides the files for these managers; kardianos/service puts them in place. This package does not know
// what the programs do, nor how they are configured.
package service

import (
	"cmp"
	"context"
	"errors"
	"os"
	"runtime"
)

// The managers, as Status names them.
const (
	SystemdUser   = "systemd-user"
	SystemdSystem = "systemd-system"
	Launchd       = "launchd"
	Windows       = "windows"
	None          = "none" // no known service manager
)

// Options describe the service. Binary is required to install, but not to read the status.
type Options struct {
	Program  Program  // Daemon or Server
	Binary   string   // absolute path of the program
	Args     []string // its arguments
	LogFile  string   // the program's log file, on systems without a journal
	Writable []string // folders it writes to; those outside the user's home must exist
	System   bool     // with systemd: the daemon as a service of the system, which runs without a login; needs root
	User     string   // with System: the user whose conversations are delivered
	Home     string   // with System: that user's home
}

// Status is what the manager reports about the service. Unknown fields have their zero value.
type Status struct {
	Manager   string // one of the constants
	Installed bool
	Enabled   bool // starts at login, or at boot
	Running   bool
	PID       int    // of the program; 0 when it does not run
	UnitPath  string // of the file in force
	Binary    string // the program that it starts
	Linger    *bool  // with systemd-user: whether it runs without a login; nil: unknown
	Note      string // one more line, such as why it failed or why there is no manager; may be ""
}

// LingerHint says what keeps a service of a user running while nobody is logged in; "" where nothing has to be done.
func (s Status) LingerHint() string {
	if s.Manager != SystemdUser || s.Linger != nil && *s.Linger {
		return ""
	}
	return "it runs while you are logged in; to keep it running without that: `sudo loginctl enable-linger " +
		cmp.Or(os.Getenv("USER"), "$USER") + "`"
}

// Outcome is what Install did.
type Outcome struct {
	UnitPath string
	Packaged bool // the file is that of a package: it was only enabled
	Written  bool // the file is new or has changed
	Started  bool // it was started, or started again
}

// Removal is what Uninstall did.
type Removal struct {
	Removed []string // files
	Kept    []string // a package's files, which its manager removes
	Was     bool     // there was something to remove
}

// manager is a service manager. Errors are *control.Error with a hint. Methods may be called by one goroutine at a
// time.
type manager interface {
	// Status asks the manager. Where there is none, Manager is None and Note says why; that is no error.
	Status(ctx context.Context) (Status, error)
	// Install makes the service start automatically from now on, and starts it if start is set. Installing again is
	// harmless: it keeps what is right, replaces an older file, and restarts a process that runs another program.
	Install(ctx context.Context, start bool) (Outcome, error)
	// Uninstall stops the service and removes everything that Install made. Without a service it does nothing.
	Uninstall(ctx context.Context) (Removal, error)
	// Start starts the service, and returns when it is running.
	Start(ctx context.Context) error
	// Stop stops the service until the next login, boot or Start, and returns when it has ended.
	Stop(ctx context.Context) error
	// Restart stops the service, if it runs, and starts it.
	Restart(ctx context.Context) error
	// logs is the command that shows the last n lines of the log, and new ones if follow is set.
	logs(n int, follow bool) []string
	// fits reports whether a file is the one of this version, apart from what differs between installations.
	fits(text string) bool
}

// Service is a program as a service of this machine, whether it is installed or not.
type Service struct {
	manager
	program Program
}

// New finds the manager. It neither asks nor changes anything. An error means that the options fit no manager of this
// system.
func New(o Options) (*Service, error) { return newOn(runtime.GOOS, o) }

func newOn(system string, o Options) (*Service, error) {
	if o.System && system != "linux" {
		return nil, &noSystem
	}
	if o.Program.Name == "" {
		return nil, errors.New("service: the options name no program")
	}
	var m manager
	var err error
	switch system {
	case "linux":
		m, err = newSystemd(o)
	case "darwin":
		m, err = newLaunchd(o)
	case "windows":
		m, err = newSCM(o)
	default:
		m = nobody{o.Program}
	}
	if err != nil {
		return nil, err
	}
	return &Service{m, o.Program}, nil
}

// LogCommand returns the command that shows the last n lines of the service's log, and with follow new ones until it is
// interrupted. An error means that there is no log to show.
func (s *Service) LogCommand(n int, follow bool) ([]string, error) {
	if argv := s.logs(n, follow); len(argv) > 0 {
		return argv, nil
	}
	return nil, s.program.noManager()
}
