// Package service makes ccship and ccship-server services of the operating system: it installs, starts, stops and
// describes them, with systemd (a user's own manager, or the system's), launchd, or Windows' service manager. Package
// packaging provides the files for these managers; kardianos/service puts them in place. This package does not know
// what the programs do, nor how they are configured.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"runtime"
	"strings"

	kardianos "github.com/kardianos/service"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/packaging"
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

// outputs matches the files in a property list that the program's output goes to.
var outputs = regexp.MustCompile(`(<key>Standard(?:Out|Error)Path</key>\s*)<string>[^<]*</string>`)

// Current reports whether the file in force is the one that this version installs, apart from what differs between
// installations: the command, and the writable folders. st is a Status. A service that is not installed is current,
// because there is nothing to update.
func (s *Service) Current(st Status) (bool, error) {
	if !st.Installed || st.UnitPath == "" {
		return true, nil
	}
	have, err := os.ReadFile(st.UnitPath)
	if errors.Is(err, fs.ErrNotExist) { // the manager remembers a file that was removed
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", st.UnitPath, err)
	}
	return s.fits(string(have)), nil
}

func (s *systemd) fits(text string) bool {
	want := s.o.Program.unit(s.o.System)
	own := regexp.MustCompile(`(?m)^(ExecStart|ReadWritePaths)=.*$`)
	return own.ReplaceAllString(text, "$1") == own.ReplaceAllString(want, "$1")
}

func (l *launchd) fits(text string) bool {
	without := func(text string) string {
		return outputs.ReplaceAllString(arguments.ReplaceAllString(text, "$1$2"), "$1")
	}
	return without(text) == without(l.o.Program.agent)
}

func (s *scm) fits(string) bool { return true }
func (nobody) fits(string) bool { return true }

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

// Host runs the daemon as the manager that started this process expects, until ctx is done or the manager asks it to
// stop. Only Windows expects anything; elsewhere, and in a terminal, Host only calls run.
func Host(ctx context.Context, run func(context.Context) error) error {
	if runtime.GOOS != "windows" || kardianos.Interactive() {
		return run(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	h := hosted{
		start: func() { // must return at once
			go func() {
				err := run(ctx)
				ended <- err
				if err != nil && ctx.Err() == nil {
					os.Exit(1) // it ended by itself: the manager sees a failure and restarts it
				}
			}()
		},
		stop: func() error { // takes a few seconds at most
			cancel()
			return <-ended
		},
	}
	s, err := kardianos.New(h, &kardianos.Config{Name: Daemon.Name})
	if err != nil {
		return failed("connect to the service manager", err, "run it in a terminal: `ccship run`")
	}
	return s.Run()
}

// hosted is a daemon between Windows' Start and Stop.
type hosted struct {
	start func()
	stop  func() error
}

func (h hosted) Start(kardianos.Service) error { h.start(); return nil }
func (h hosted) Stop(kardianos.Service) error  { return h.stop() }

// Managed reports whether a service manager started this process.
func Managed() bool {
	return os.Getenv("NOTIFY_SOCKET") != "" || os.Getenv("XPC_SERVICE_NAME") == Daemon.label ||
		runtime.GOOS == "windows" && !kardianos.Interactive()
}

// RestartsAnyFailure reports whether the manager that started this process restarts it after every exit code except 0.
// A mistake that a restart cannot fix must then end with 0. launchd does so; the others can be configured.
func RestartsAnyFailure() bool { return os.Getenv("XPC_SERVICE_NAME") == Daemon.label }

// Program is one of the programs that can be a service.
type Program struct {
	Name string // of the command, the unit and Windows' service

	what       string // in a sentence
	install    string // the command line that installs it
	foreground string // the command that runs it without a manager
	label      string // launchd's name of the agent
	userUnit   string // systemd's files, and launchd's
	systemUnit string // "": it is a service of one user only
	agent      string
	start      string // its command in these units
	logs       string // its command that shows the log; "": the manager's is used
}

// Daemon is ccship itself, as a service of one user or of the system.
var Daemon = Program{
	Name: "ccship", what: "the daemon", foreground: "ccship run", install: "ccship service install",
	label: "com.github.ccship", logs: "ccship service logs",
	userUnit: packaging.UserUnit, systemUnit: packaging.SystemUnit, agent: packaging.Agent, start: packaging.Start,
}

// Server is ccship-server as a service of one user. Packages bring a service of the system themselves.
var Server = Program{
	Name: "ccship-server", what: "the server", foreground: "ccship-server serve", install: "ccship-server install",
	label:    "com.github.ccship.server",
	userUnit: packaging.ServerUserUnit, agent: packaging.ServerAgent, start: packaging.ServerStart,
}

// unit is systemd's file for the program.
func (p Program) unit(system bool) string {
	if system {
		return p.systemUnit
	}
	return p.userUnit
}

// orSystem returns a hint at the service of the system, for a program that can be one.
func (p Program) orSystem(hint string) string {
	if p.systemUnit == "" {
		return "`sudo systemctl enable --now " + p.Name + "` starts the service of the package, which is of the system"
	}
	return hint
}

// logHint returns a hint at the log: what it does for the reader.
func (s *systemd) logHint(does string) string { return s.o.Program.logHint(s.logs(50, false), does) }

func (l *launchd) logHint(does string) string { return l.o.Program.logHint(l.logs(50, false), does) }

func (p Program) logHint(argv []string, does string) string {
	if p.logs != "" {
		argv = []string{p.logs}
	}
	return "`" + strings.Join(argv, " ") + "` " + does
}
