package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ccship/ccship/daemon/control"
)

// install installs the unit as our own file, or enables the package's unit if that has the same content.
func (s *systemd) Install(ctx context.Context, start bool) (Outcome, error) {
	if err := s.mayChange(); err != nil {
		return Outcome{}, err
	}
	text, err := renderUnit(s.o)
	if err != nil {
		return Outcome{}, err
	}
	before, err := s.Status(ctx)
	if err != nil {
		return Outcome{}, err
	}
	if before.Manager == None {
		return Outcome{}, s.o.Program.noManager()
	}
	out := Outcome{UnitPath: s.own}
	old, err := os.ReadFile(s.own)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return out, failed("read unit", err, "make it readable by this user")
	}
	own := err == nil
	if shipped, err := os.ReadFile(s.packaged); err == nil && string(shipped) == text {
		out.UnitPath, out.Packaged, out.Written = s.packaged, true, own
		err = s.enablePackaged(ctx, own)
		if err != nil {
			return out, err
		}
	} else if own && string(old) == text {
		if _, err := s.systemctl(ctx, "enable", s.unit); err != nil {
			return out, failed("enable service", err, "`systemctl cat "+s.unit+"` shows what systemd knows about it")
		}
	} else {
		out.Written = true
		if err := s.replace(text, old, own, before.Running); err != nil {
			return out, err
		}
	}
	if err := s.inForce(ctx, out.UnitPath); err != nil {
		return out, err
	}
	if !start {
		return out, nil
	}
	out.Started, err = s.bringUp(ctx, before, out.Written)
	return out, err
}

// mayChange returns an error if this user may not change the manager's units.
func (s *systemd) mayChange() error {
	if s.o.System && os.Geteuid() != 0 {
		return control.NewError(CodeNeedsRoot, "only root may change a service of the system",
			"run `sudo ccship … --system`, or leave --system out")
	}
	return nil
}

// enablePackaged enables the package's unit, and removes a unit of our own that would hide it.
func (s *systemd) enablePackaged(ctx context.Context, own bool) error {
	if own {
		lib, err := s.library("")
		if err == nil {
			err = lib.Uninstall()
		}
		if err != nil {
			return failed("remove older unit "+s.own, err, "remove that file and run the command again")
		}
	}
	if _, err := s.systemctl(ctx, "enable", s.unit); err != nil {
		return failed("enable service", err, "`systemctl cat "+s.unit+"` shows what systemd knows about it")
	}
	return nil
}

// replace replaces an older unit, and restores it after a failure. The library refuses to overwrite a file, and enables
// the unit that it writes.
func (s *systemd) replace(text string, old []byte, own, running bool) error {
	lib, err := s.library(text)
	if err != nil {
		return err
	}
	if running {
		if err := lib.Stop(); err != nil {
			return failed("stop older service", err, s.logHint("shows what it does"))
		}
	}
	if !s.o.System { // the library would make the folder readable by everyone
		if err := os.MkdirAll(filepath.Dir(s.own), 0o700); err != nil {
			return failed("make folder of units", err, "make it writable for this user")
		}
	}
	if own {
		if err := os.Remove(s.own); err != nil {
			return failed("replace unit", err, "make it writable for this user")
		}
	}
	err = lib.Install()
	if err == nil && !s.o.System {
		err = os.Chmod(s.own, 0o600)
	}
	if err == nil {
		return nil
	}
	undo := os.Remove(s.own)
	if own {
		undo = os.WriteFile(s.own, old, 0o600)
	}
	if errors.Is(undo, fs.ErrNotExist) {
		undo = nil
	}
	return failed("install unit", errors.Join(err, undo), "`"+strings.Join(s.with("systemctl", "status"),
		" ")+"` says whether systemd works")
}

// inForce makes sure that systemd uses our file: it may search other folders first.
func (s *systemd) inForce(ctx context.Context, path string) error {
	p, err := s.show(ctx)
	if err != nil {
		return err
	}
	if p["FragmentPath"] == path || p["FragmentPath"] == strings.TrimPrefix(path, "/usr") { // /lib is /usr/lib
		return nil
	}
	found := p["FragmentPath"]
	if found == "" {
		found = "none at all (" + p["LoadState"] + ")"
	}
	return control.Failed("systemd does not use "+path+" but "+found,
		"remove the other one, or see `"+strings.Join(s.with("systemctl", "cat", s.unit), " ")+"`")
}

// bringUp starts a service that does not run, and restarts one that runs another program than the installed one.
func (s *systemd) bringUp(ctx context.Context, before Status, written bool) (bool, error) {
	now, err := s.Status(ctx)
	if err != nil {
		return false, err
	}
	if now.Running && !written && !outdated(now) {
		return false, nil
	}
	if now.Running || before.Running {
		return true, s.Restart(ctx)
	}
	return true, s.Start(ctx)
}

// outdated reports whether a process runs another program than its path names now, as after an upgrade.
func outdated(st Status) bool {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", st.PID))
	real, realErr := filepath.EvalSymlinks(st.Binary)
	return err == nil && realErr == nil && exe != real
}

func (s *systemd) Uninstall(ctx context.Context) (Removal, error) {
	if err := s.mayChange(); err != nil {
		return Removal{}, err
	}
	st, err := s.Status(ctx)
	if err != nil {
		return Removal{}, err
	}
	_, ownErr := os.Stat(s.own)
	own := ownErr == nil
	if st.Manager == None && !own || st.Manager != None && !own && !st.Installed && !st.Running {
		return Removal{}, nil
	}
	if st.Manager == None {
		return Removal{}, s.o.Program.noManager()
	}
	r := Removal{Was: own || st.Running || st.Enabled}
	for _, verb := range []string{"stop", "disable"} {
		if _, err := s.systemctl(ctx, verb, s.unit); err != nil && st.Installed {
			return r, failed(verb+" service", err, s.logHint("shows what it does"))
		}
	}
	if own {
		if err := os.Remove(s.own); err != nil {
			return r, failed("remove unit", err, "remove it by hand")
		}
		r.Removed = append(r.Removed, s.own)
		if _, err := s.systemctl(ctx, "daemon-reload"); err != nil {
			return r, failed("tell systemd", err, "`systemctl daemon-reload`")
		}
	}
	_, _ = s.systemctl(ctx, "reset-failed", s.unit) // fails when there is nothing to reset
	if _, err := os.Stat(s.packaged); err == nil && r.Was {
		r.Kept = append(r.Kept, s.packaged)
	}
	return r, nil
}

// installed returns the status of an installed service.
func (s *systemd) installed(ctx context.Context) (Status, error) {
	if err := s.mayChange(); err != nil {
		return Status{}, err
	}
	st, err := s.Status(ctx)
	switch {
	case err != nil:
		return st, err
	case st.Manager == None:
		return st, s.o.Program.noManager()
	case !st.Installed:
		return st, s.o.Program.notInstalled()
	}
	return st, nil
}

func (s *systemd) Start(ctx context.Context) error {
	return s.control(ctx, "start service", installer.Start)
}

func (s *systemd) Stop(ctx context.Context) error {
	return s.control(ctx, "stop service", installer.Stop)
}

func (s *systemd) Restart(ctx context.Context) error {
	return s.control(ctx, "restart service", installer.Restart)
}

// control performs one action on the service, and explains a failure.
func (s *systemd) control(ctx context.Context, what string, do func(installer) error) error {
	if _, err := s.installed(ctx); err != nil {
		return err
	}
	lib, err := s.library("")
	if err != nil {
		return err
	}
	if err := do(lib); err != nil {
		return s.diagnose(ctx, what, err)
	}
	return nil
}

// diagnose explains a bare failure of systemctl with the exit status and the last output of the daemon.
func (s *systemd) diagnose(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := control.Error{Code: CodeNotStarted, Message: what + ": " + err.Error(), Hint: s.logHint("says why")}
	p, showErr := s.show(ctx)
	if showErr != nil {
		return &e
	}
	e.Message = what + ": it ended with exit status " + p["ExecMainStatus"] + " (" + p["Result"] + ")"
	if p["ExecMainStatus"] == "2" && s.o.Program.Name == Daemon.Name {
		e.Hint = "`ccship doctor` checks the configuration"
	}
	words, logErr := ask(ctx, append(s.with("journalctl", "--unit="+s.unit, "--lines=5", "--no-pager"), "--output=cat")...)
	for line := range strings.Lines(words) {
		if said, ok := strings.CutPrefix(strings.TrimSpace(line), s.o.Program.Name+": "); ok && logErr == nil {
			e.Message = what + ": " + said
		}
	}
	return &e
}
