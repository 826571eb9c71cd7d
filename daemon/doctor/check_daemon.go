package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/internal/service"
	"github.com/ccship/ccship/state"
)

// slow is how long the daemon may take to answer before that is a finding.
const slow = 200 * time.Millisecond

func checkDaemon(_ context.Context, x *exam) []Finding {
	r := x.daemon()
	switch {
	case r.client == nil && codeOf(r.err) == control.CodeNoAnswer:
		f := Finding{Level: Fail, Text: "the daemon accepts connections, but does not answer", Detail: "asked at " +
			r.socket, Fix: "check its process, or restart it"}
		if x.installed() {
			f.Fix = "`ccship service restart`"
			f = f.safely(phaseService, x.restart)
		}
		return []Finding{f}
	case r.client == nil && errors.Is(r.err, control.ErrNotRunning):
		return []Finding{x.notRunning()}
	case r.client == nil:
		f := explained(Fail, r.err)
		if codeOf(r.err) == control.CodeSocket {
			f.ID = "socket"
		}
		return []Finding{f}
	}
	text := fmt.Sprintf("running for %s (pid %d)", amount.Duration(x.now.Sub(r.status.StartedAt)), r.status.PID)
	switch {
	case r.socket == x.o.ForeignSocket:
		return []Finding{{Level: Note, Text: text + ", as part of `ccship up`: it stops when that ends",
			Fix: "`ccship setup`"}}
	case !x.managedDaemon() && (x.service().err != nil || x.service().status.Manager != service.None):
		return []Finding{{Level: Note, Text: text + ", but not as a service: it is not restarted after a crash or reboot",
			Fix: "stop it, then `ccship service install`"}}
	}
	return fine(text)
}

// notRunning returns the finding that no daemon runs, with the command that starts one.
func (x *exam) notRunning() Finding {
	m := x.service()
	f := Finding{Level: Fail, Text: "the daemon is not running", Fix: "`ccship service install`"}
	switch {
	case x.o.ConfigErr != nil:
		f.Fix = "fix the configuration first"
	case m.err == nil && m.status.Manager == service.None:
		f.Fix = "`ccship run`"
	case m.err == nil && m.status.Installed && m.status.Running:
		f.Text, f.Fix = "the service is running, but its daemon does not answer on "+x.o.Sockets[0],
			"`ccship service restart`"
		f = f.safely(phaseService, x.restart)
	case m.err == nil && m.status.Installed:
		f.Detail, f.Fix = m.status.Note, "`ccship service start`"
		f = f.safely(phaseService, x.start)
	}
	return f
}

func checkVersion(_ context.Context, x *exam) []Finding {
	r := x.daemon()
	if r.client == nil || r.status.Version == "" {
		return nil
	}
	if r.status.Version == x.o.Version {
		return fine("daemon and command line are " + x.o.Version)
	}
	f := Finding{Level: Warn, Text: "the daemon is version " + r.status.Version + ", this command line is " + x.o.Version,
		Fix: "stop the daemon and start it again"}
	switch {
	case !x.managedDaemon():
	case sameFile(x.service().status.Binary, x.o.Program):
		f.Fix = "`ccship service restart`"
		f = f.safely(phaseService, x.restart)
	default:
		f.Detail, f.Fix = "the service runs "+x.service().status.Binary, "`ccship service install` to run "+x.o.Program
	}
	return []Finding{f}
}

func checkService(_ context.Context, x *exam) []Finding {
	m, st := x.service(), x.service().status
	switch {
	case m.err != nil:
		return []Finding{explained(Warn, m.err)}
	case st.Manager == service.None:
		return []Finding{{Level: Warn, Text: "ccship is not started automatically: this system has no service manager",
			Fix: "have `ccship run` started at boot, by cron's @reboot or a container's start command"}}
	case !st.Installed:
		return []Finding{{Level: Warn, Text: "ccship is not installed as a service, so it is not started automatically",
			Detail: st.Note, Fix: "`ccship service install`"}}
	case !st.Enabled:
		return []Finding{{Level: Warn, Text: "the service does not start automatically at login",
			Fix: "`ccship service install`"}}
	}
	return fine("installed (" + st.Manager + "), starts automatically")
}

func checkUnit(_ context.Context, x *exam) []Finding {
	st := x.service().status
	if !x.installed() {
		return nil
	}
	if st.Binary != "" && !exists(st.Binary) {
		f := Finding{Level: Fail, Text: "the service's program " + st.Binary + " does not exist",
			Fix: "`ccship service install`"}
		return []Finding{f.safely(phaseUnit, x.reinstall)}
	}
	current, err := x.o.Service.Current(st)
	switch {
	case err != nil:
		return []Finding{explained(Warn, err)}
	case !current:
		f := Finding{Level: Warn, Text: "the service's unit file differs from the one this version installs",
			Detail: st.UnitPath, Fix: "`ccship service install`"}
		if !sameFile(st.Binary, x.o.Program) { // which of the two should run is the user's choice
			f.Detail += " runs " + st.Binary + ", this is " + x.o.Program
			return []Finding{f}
		}
		return []Finding{f.safely(phaseUnit, x.reinstall)}
	case st.Binary != "" && !sameFile(st.Binary, x.o.Program):
		return []Finding{{Level: Note, Text: "the service runs a different program", Detail: st.Binary + ", this is " +
			x.o.Program, Fix: "`ccship service install` to run this one"}}
	}
	return fine("up to date")
}

func checkLinger(_ context.Context, x *exam) []Finding {
	st := x.service().status
	if !x.installed() || st.Manager != service.SystemdUser || st.Linger == nil {
		return nil
	}
	if *st.Linger {
		return fine("runs without a login")
	}
	name := os.Getenv("USER")
	if name == "" {
		name = "$USER"
	}
	return []Finding{{Level: Note, Text: "the service runs only while you are logged in",
		Fix: "`sudo loginctl enable-linger " + name + "`"}}
}

// sameFile says whether two paths lead to one file. It is true if one of them is empty.
func sameFile(a, b string) bool {
	one, errOne := os.Stat(a)
	other, errOther := os.Stat(b)
	return a == "" || b == "" || a == b || errOne == nil && errOther == nil && os.SameFile(one, other)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// onlyOwners says whether only the owner may read or write. On Windows it is true: access lists are not checked.
func onlyOwners(mode os.FileMode) bool { return runtime.GOOS == "windows" || mode.Perm()&0o077 == 0 }

// checkSocket checks the socket that the daemon answers on; without a daemon, the configured one.
func checkSocket(_ context.Context, x *exam) []Finding {
	if len(x.o.Sockets) == 0 {
		return nil
	}
	r := x.daemon()
	path := x.o.Sockets[0]
	if r.client != nil {
		path = r.socket
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && r.client == nil:
		return nil // checkDaemon reports it
	case codeOf(r.err) == control.CodeSocket:
		return nil // checkDaemon reports it
	case err != nil:
		return []Finding{{Level: Warn, Text: "the control socket cannot be checked: " + err.Error()}}
	case r.client == nil && errors.Is(r.err, control.ErrNotRunning):
		f := Finding{Level: Warn, Text: "a killed daemon left its socket behind", Detail: path,
			Fix: "`rm " + control.ShellWord(path) + "`"}
		return []Finding{f.safely(phaseFile, func(context.Context) error { return control.RemoveStale(path) })}
	}
	var found []Finding
	if !ours(info) {
		found = append(found, Finding{Level: Warn, Text: "the control socket belongs to another user", Detail: path,
			Fix: "choose another path with --socket"})
	} else if !onlyOwners(info.Mode()) {
		found = append(found, loose(path, "the control socket", info, 0o600))
	}
	if folder, err := os.Stat(filepath.Dir(path)); err == nil && ours(folder) && folder.Mode().Perm()&0o022 != 0 &&
		!onlyOwners(folder.Mode()) && folder.Mode()&fs.ModeSticky == 0 {
		found = append(found, loose(filepath.Dir(path), "the folder of the control socket", folder, 0o700))
	}
	if r.client != nil && r.took > slow+x.o.patience {
		found = append(found, Finding{Level: Warn, Text: fmt.Sprintf("the daemon took %s to answer",
			r.took.Round(time.Millisecond)), Detail: "it or this machine is busy",
			Fix: "`ccship status` shows what it is doing"})
	}
	if len(found) == 0 && r.client != nil {
		return fine("answers in " + r.took.Round(100*time.Microsecond).String())
	}
	return found
}

// loose returns the finding of a file that others may read or write.
func loose(path, what string, info fs.FileInfo, mode fs.FileMode) Finding {
	f := Finding{
		Level: Warn, Text: fmt.Sprintf("%s is readable by others (mode %04o)", what, info.Mode().Perm()), Detail: path,
		Fix: fmt.Sprintf("`chmod %o %s`", mode, control.ShellWord(path)),
	}
	if info.Mode().Perm()&0o022 != 0 {
		f.Text = fmt.Sprintf("%s is writable by others (mode %04o)", what, info.Mode().Perm())
	}
	return f.safely(phaseFile, func(context.Context) error { return os.Chmod(path, mode) })
}

// statePath returns the daemon's state file.
func (x *exam) statePath() string { return filepath.Join(x.o.Config.StateDir, "state.db") }

func checkState(ctx context.Context, x *exam) []Finding {
	path := x.statePath()
	found := x.looseState()
	//nolint:forbidigo // another check reports a folder that cannot be listed
	if aside, err := filepath.Glob(escapeGlob(path) + ".corrupt-*"); err == nil && len(aside) > 0 {
		found = append(found, Finding{
			Level: Note, Text: "a damaged state file was set aside, and every transcript is sent again",
			Detail: strings.Join(aside, ", "),
			Fix:    "`ccship verify --repair` sends what the server lacks; then delete the file, and check the disk",
		})
	}
	switch err := state.Check(ctx, path); {
	case slices.ContainsFunc(x.daemon().status.Advice, func(a control.Advice) bool { return a.Kind == "state_gone" }):
		return found // the daemon's advice says it
	case err == nil:
		if len(found) == 0 {
			return fine("no damage: " + path)
		}
	case errors.Is(err, fs.ErrNotExist):
		if x.daemon().client != nil && x.daemon().socket != x.o.ForeignSocket {
			found = append(found, Finding{Level: Note, Text: "the daemon keeps its state elsewhere, not in " + path})
		}
	case errors.Is(err, state.ErrCorrupt):
		f := Finding{Level: Fail, Text: "the state file is damaged", Detail: err.Error(),
			Fix: "check the disk, then `ccship service restart`: the file is then set aside, and every transcript is sent again"}
		if x.daemon().client == nil {
			f.Fix = "check the disk, then `ccship service start`: the file is then set aside, and every transcript is sent again"
		}
		found = append(found, f)
	case ended(ctx, err):
		found = append(found, Finding{Level: Note, Text: "the state file is too large to check in time", Detail: path})
	default:
		f := explained(Fail, err)
		f.Fix = "make it readable and writable by this user"
		found = append(found, f)
	}
	return found
}

// looseState finds files of the state that others can read or write.
func (x *exam) looseState() []Finding {
	var found []Finding
	for _, part := range []struct {
		path, what string
		mode       fs.FileMode
	}{{x.o.Config.StateDir, "the state folder", 0o700}, {x.statePath(), "the state file", 0o600}} {
		if info, err := os.Stat(part.path); err == nil && !onlyOwners(info.Mode()) && ours(info) {
			found = append(found, loose(part.path, part.what, info, part.mode))
		}
	}
	return found
}

// escapeGlob makes a pattern that matches a path literally.
func escapeGlob(path string) string {
	if filepath.Separator == '\\' {
		return path // Windows has no escaping; files that do not match are not reported
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

func checkDisk(_ context.Context, x *exam) []Finding {
	dir := x.o.Config.StateDir
	for !exists(dir) && filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
	}
	free, head, err := state.DiskSpace(dir, x.o.Config.HeadRoom)
	if err != nil {
		return []Finding{explained(Warn, err)}
	}
	text := fmt.Sprintf("%s free for state and outbox", amount.Size(int64(free)))
	f := Finding{Text: text, Detail: fmt.Sprintf("below %s reading stops, and nothing is queued",
		amount.Size(int64(head))), Fix: "free disk space, or lower head_room"}
	switch {
	case free < head:
		f.Level, f.Text = Fail, "the disk is nearly full: "+text
	case free < 2*head:
		f.Level, f.Text = Warn, "the disk is filling up: "+text
	default:
		return fine(text)
	}
	return []Finding{f}
}
