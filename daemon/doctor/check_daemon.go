package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/internal/service"
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
