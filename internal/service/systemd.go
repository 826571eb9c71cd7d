package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	kardianos "github.com/kardianos/service"

	"github.com/ccship/ccship/daemon/control"
)

// systemd is a user's own manager, or the system's.
type systemd struct {
	o        Options
	unit     string // name
	own      string // the file that install writes
	packaged string // the file that packages bring
}

func newSystemd(o Options) (*systemd, error) {
	if o.System {
		name := o.Program.Name + "@" + o.User + ".service"
		return &systemd{
			o: o, unit: name, own: "/etc/systemd/system/" + name,
			packaged: "/usr/lib/systemd/system/" + o.Program.Name + "@.service",
		}, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, failed("find home folder", err, "set HOME")
	}
	o.Home = home
	name := o.Program.Name + ".service"
	return &systemd{
		o: o, unit: name, own: filepath.Join(home, ".config", "systemd", "user", name),
		packaged: "/usr/lib/systemd/user/" + name,
	}, nil
}

// library is kardianos/service, set to write text as the unit.
func (s *systemd) library(text string) (installer, error) {
	return library("linux-systemd", &kardianos.Config{
		Name: strings.TrimSuffix(s.unit, ".service"), Executable: s.o.Binary,
		Option: kardianos.KeyValue{"UserService": !s.o.System, "SystemdScript": text},
	})
}

// systemctl runs systemctl against the manager.
func (s *systemd) systemctl(ctx context.Context, words ...string) (string, error) {
	return ask(ctx, s.with("systemctl", words...)...)
}

func (s *systemd) with(name string, words ...string) []string {
	argv := []string{name}
	if !s.o.System {
		argv = append(argv, "--user")
	}
	return append(argv, words...)
}

// properties are those that status asks for.
const properties = "LoadState,ActiveState,UnitFileState,FragmentPath,MainPID,Result,ExecMainStatus,ExecStart"

func (s *systemd) Status(ctx context.Context) (Status, error) {
	st := Status{Manager: SystemdUser}
	if s.o.System {
		st.Manager = SystemdSystem
	}
	p, err := s.show(ctx)
	if err != nil {
		var known *control.Error
		if errors.As(err, &known) && known.Code == CodeNoManager {
			return Status{Manager: None, Note: known.Message}, nil
		}
		return st, err
	}
	st.UnitPath = p["FragmentPath"]
	st.Installed = st.UnitPath != "" && p["LoadState"] == "loaded"
	st.Enabled = strings.HasPrefix(p["UnitFileState"], "enabled")
	st.Running = p["ActiveState"] == "active" || p["ActiveState"] == "reloading"
	st.PID, _ = strconv.Atoi(p["MainPID"]) // not a number: not running
	st.Binary = programOf(p["ExecStart"])
	switch {
	case p["LoadState"] != "loaded" && p["LoadState"] != "not-found":
		st.Note = "systemd cannot use " + s.own + " (" + p["LoadState"] + ")"
	case p["ActiveState"] == "failed":
		st.Note = "it failed (" + p["Result"] + ", exit status " + p["ExecMainStatus"] + ")"
	case p["ActiveState"] == "activating" || p["ActiveState"] == "deactivating":
		st.Note = "it is " + p["ActiveState"]
	}
	if !s.o.System {
		st.Linger = linger(ctx)
	}
	return st, nil
}

// show returns the unit's properties.
func (s *systemd) show(ctx context.Context) (map[string]string, error) {
	out, err := s.systemctl(ctx, "show", "--property="+properties, s.unit)
	if err != nil {
		return nil, s.unreached(err)
	}
	p := map[string]string{}
	for line := range strings.Lines(out) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		p[name] = value
	}
	return p, nil
}

// programOf reads "{ path=/usr/bin/ccship ; argv[]=…".
func programOf(exec string) string {
	_, rest, _ := strings.Cut(exec, "path=")
	path, _, _ := strings.Cut(rest, " ; argv[]=")
	return path
}

// unreached explains why systemctl failed: there is no systemd, or this user's manager cannot be reached from here.
func (s *systemd) unreached(err error) error {
	_, booted := os.Stat("/run/systemd/system")
	switch {
	case errors.Is(err, exec.ErrNotFound),
		strings.Contains(err.Error(), "not been booted with systemd"),
		strings.Contains(err.Error(), "connect to bus") && booted != nil:
		return s.o.Program.noManager()
	case !strings.Contains(err.Error(), "connect to bus") || s.o.System:
		return failed("ask systemd", err, "`systemctl status` shows whether systemd works")
	}
	name, runtime := "$USER", fmt.Sprintf("/run/user/%d", os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	e := control.Error{
		Code: CodeNoSession, Message: "this shell cannot reach " + name + "'s systemd (no user bus)",
		Hint: "log in as " + name + " instead of switching to that user, or let it run without a login: `sudo loginctl " +
			"enable-linger " + name + "`",
	}
	_, there := os.Stat(filepath.Join(runtime, "systemd"))
	switch sudo := os.Getenv("SUDO_USER"); {
	case os.Geteuid() == 0 && sudo != "":
		e.Hint = "run it without sudo, as " + sudo +
			s.o.Program.orSystem("; or for a service that runs without a login: `sudo ccship service install --system`")
	case there == nil && os.Getenv("XDG_RUNTIME_DIR") != runtime:
		e.Message = "this shell cannot reach " + name + "'s systemd: XDG_RUNTIME_DIR is not set to " + runtime
		e.Hint = "`export XDG_RUNTIME_DIR=" + runtime + "`, then run the command again"
	case os.Geteuid() == 0:
		e.Hint = s.o.Program.orSystem("for another user's conversations: `ccship service install --system --for USER`")
	}
	return &e
}

// linger reports whether this user's services run without a login; nil when logind does not know.
func linger(ctx context.Context) *bool {
	out, err := ask(ctx, "loginctl", "show-user", strconv.Itoa(os.Getuid()), "--property=Linger")
	if err == nil {
		switch out {
		case "Linger=yes", "Linger=no":
			yes := out == "Linger=yes"
			return &yes
		}
	}
	// logind only knows users who are logged in; the file lists those that linger.
	u, err := user.Current()
	if err != nil {
		return nil
	}
	_, err = os.Stat(filepath.Join("/var/lib/systemd/linger", u.Username))
	if yes := err == nil; yes {
		return &yes
	}
	return nil
}

func (s *systemd) logs(n int, follow bool) []string {
	argv := s.with("journalctl", "--unit="+s.unit, "--lines="+strconv.Itoa(n))
	if !follow {
		return append(argv, "--no-pager")
	}
	return append(argv, "--follow")
}

// Parts are the daemon's parts that a watchdog checks.
type Parts struct {
	Control StatusReader
	Tailer  Heartbeat
	State   Prober
}

// StatusReader asks for the status over the control socket, as every client does; *control.Client is one.
type StatusReader interface {
	Status(ctx context.Context) (control.Status, error)
}

// Heartbeat is a loop that should never stop; *tail.Tailer is one.
type Heartbeat interface {
	// SinceHeartbeat is the time since the loop began its last round.
	SinceHeartbeat() time.Duration
}

// Prober is a store that may hang; *state.DB is one.
type Prober interface {
	// Alive returns when the store has made a transaction. It may outlast ctx.
	Alive(ctx context.Context) error
}

// watchdog checks that the parts work.
type watchdog struct {
	Parts
	limit time.Duration // for one check of all parts, and between two checks
	busy  chan struct{} // holds a token while the state is asked
}

// check returns the status once every part has answered, or an error that names the part that has not.
func (w *watchdog) check(ctx context.Context) (control.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	if still := w.Tailer.SinceHeartbeat(); still > 2*w.limit {
		return control.Status{}, fmt.Errorf("the tailer has been still for %s", still.Round(time.Second))
	}
	s, err := w.Control.Status(ctx)
	if err != nil {
		return s, fmt.Errorf("the control socket does not answer: %w", err)
	}
	select {
	case w.busy <- struct{}{}:
	default:
		return s, errors.New("the state still hangs")
	}
	answer := make(chan error, 1)
	go func() { // the leader of a group of transactions cannot leave it: this may outlast the check
		answer <- w.State.Alive(ctx)
		<-w.busy
	}()
	select {
	case err = <-answer:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return s, fmt.Errorf("the state does not answer: %w", err)
	}
	return s, nil
}
