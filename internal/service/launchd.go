package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	kardianos "github.com/kardianos/service"

	"github.com/ccship/ccship/daemon/control"
)

// launchd runs an agent of this user, from login to logout.
type launchd struct {
	o      Options
	domain string // of the user's agents
	path   string // of the property list
	write  func(text string) error
}

func newLaunchd(o Options) (*launchd, error) {
	home, err := os.UserHomeDir()
	if u, userErr := user.Current(); userErr == nil { // the way the library that writes the file finds it
		home, err = u.HomeDir, nil
	}
	if err != nil {
		return nil, failed("find home folder", err, "set HOME")
	}
	l := &launchd{
		o: o, domain: fmt.Sprintf("gui/%d", os.Getuid()),
		path: filepath.Join(home, "Library", "LaunchAgents", o.Program.label+".plist"),
	}
	l.write = func(text string) error {
		lib, err := library("darwin-launchd", &kardianos.Config{
			Name: o.Program.label, Executable: o.Binary, Option: kardianos.KeyValue{"UserService": true, "LaunchdConfig": text},
		})
		if err != nil {
			return err
		}
		return lib.Install()
	}
	return l, nil
}

// target returns the agent's name in its domain.
func (l *launchd) target() string { return l.domain + "/" + l.o.Program.label }

// loaded reports whether launchd knows the agent, and returns its description.
func (l *launchd) loaded(ctx context.Context) (description string, ok bool) {
	out, err := ask(ctx, "launchctl", "print", l.target())
	return out, err == nil
}

func (l *launchd) Status(ctx context.Context) (Status, error) {
	st := Status{Manager: Launchd}
	text, err := os.ReadFile(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return st, nil
	}
	if err != nil {
		return st, failed("read agent", err, "make it readable by this user")
	}
	st.Installed, st.UnitPath, st.Binary = true, l.path, programOfAgent(string(text))
	disabled, err := ask(ctx, "launchctl", "print-disabled", l.domain)
	off := regexp.MustCompile(`"` + regexp.QuoteMeta(l.o.Program.label) + `" => (disabled|true)`)
	st.Enabled = err != nil || !off.MatchString(disabled)
	description, ok := l.loaded(ctx)
	if !ok {
		st.Note = "launchd has not loaded it"
		return st, nil
	}
	if pid := regexp.MustCompile(`(?m)^\s*pid = ([0-9]+)$`).FindStringSubmatch(description); pid != nil {
		st.PID, _ = strconv.Atoi(pid[1]) // digits only
		st.Running = true
	} else if code := regexp.MustCompile(`(?m)^\s*last exit code = (.+)$`).FindStringSubmatch(description); code != nil {
		st.Note = "it ended with exit code " + strings.TrimSpace(code[1])
	}
	return st, nil
}

func (l *launchd) Install(ctx context.Context, start bool) (Outcome, error) {
	out := Outcome{UnitPath: l.path}
	text, err := renderAgent(l.o)
	if err != nil {
		return out, err
	}
	if err := os.MkdirAll(filepath.Dir(l.o.LogFile), 0o700); err != nil {
		return out, failed("make folder of the log", err, "make it writable for this user")
	}
	old, err := os.ReadFile(l.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return out, failed("read agent", err, "make it readable by this user")
	}
	if err != nil || string(old) != text {
		if err := l.unload(ctx); err != nil {
			return out, err
		}
		if err := l.replace(text, old, err == nil); err != nil {
			return out, err
		}
		out.Written = true
	}
	if !start {
		return out, nil
	}
	out.Started = true
	return out, l.Restart(ctx) // the path may hold a new program
}

// replace replaces an older property list, and restores it after a failure. The library refuses to overwrite a file.
func (l *launchd) replace(text string, old []byte, had bool) error {
	if err := os.Remove(l.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failed("replace agent", err, "make it writable for this user")
	}
	err := l.write(text)
	if err == nil {
		err = os.Chmod(l.path, 0o600)
	}
	if err == nil {
		return nil
	}
	if had {
		err = errors.Join(err, os.WriteFile(l.path, old, 0o600))
	}
	return failed("install agent", err, "make "+filepath.Dir(l.path)+" writable for this user")
}

// unload makes launchd end and forget the agent, and waits until it has.
func (l *launchd) unload(ctx context.Context) error {
	if _, ok := l.loaded(ctx); !ok {
		return nil
	}
	if _, err := ask(ctx, "launchctl", "bootout", l.target()); err != nil {
		if _, still := l.loaded(ctx); still && !strings.Contains(err.Error(), "in progress") {
			return failed("stop agent", err, "`launchctl print "+l.target()+"` shows its state")
		}
	}
	return l.until(ctx, "launchd did not end the agent in time", func() bool { _, still := l.loaded(ctx); return !still })
}

// settleTime limits how long launchd may take to do what it has accepted.
const settleTime = 25 * time.Second

// until waits until a condition holds.
func (l *launchd) until(ctx context.Context, late string, so func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-ctx.Done():
			return control.NewError(CodeNotStarted, late, "`launchctl print "+l.target()+"` shows its state")
		case <-tick.C:
		}
	}
	return nil
}

// load makes launchd read the property list, which starts the agent.
func (l *launchd) load(ctx context.Context) error {
	if _, err := ask(ctx, "launchctl", "enable", l.target()); err != nil {
		return failed("enable agent", err, "log in on this Mac's screen: agents belong to that session")
	}
	if _, err := ask(ctx, "launchctl", "bootstrap", l.domain, l.path); err != nil {
		return failed("start agent", err, "log in on this Mac's screen: agents belong to that session; `launchctl print "+
			""+l.domain+"` says whether there is one")
	}
	return nil
}

func (l *launchd) Uninstall(ctx context.Context) (Removal, error) {
	_, was := l.loaded(ctx)
	if err := l.unload(ctx); err != nil {
		return Removal{}, err
	}
	err := os.Remove(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return Removal{Was: was}, nil
	}
	if err != nil {
		return Removal{Was: true}, failed("remove agent", err, "remove it by hand")
	}
	return Removal{Was: true, Removed: []string{l.path}}, nil
}

// installed returns an error when there is no property list.
func (l *launchd) installed() error {
	if _, err := os.Stat(l.path); err != nil {
		return l.o.Program.notInstalled()
	}
	return nil
}

func (l *launchd) Start(ctx context.Context) error {
	if err := l.installed(); err != nil {
		return err
	}
	if _, ok := l.loaded(ctx); !ok {
		return l.load(ctx)
	}
	if _, err := ask(ctx, "launchctl", "kickstart", l.target()); err != nil {
		return failed("start agent", err, l.logHint("says why"))
	}
	return nil
}

// stop unloads the agent: launchd would restart one that only ended.
func (l *launchd) Stop(ctx context.Context) error {
	if err := l.installed(); err != nil {
		return err
	}
	return l.unload(ctx)
}

func (l *launchd) Restart(ctx context.Context) error {
	if err := l.installed(); err != nil {
		return err
	}
	if _, ok := l.loaded(ctx); !ok {
		return l.load(ctx)
	}
	if _, err := ask(ctx, "launchctl", "kickstart", "-k", l.target()); err != nil {
		return failed("restart agent", err, l.logHint("says why"))
	}
	return nil
}

func (l *launchd) logs(n int, follow bool) []string { return tail(n, follow, l.o.LogFile) }
