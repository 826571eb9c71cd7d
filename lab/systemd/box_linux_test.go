package systemd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// box is one machine: a copy of the base system, and the systemd-nspawn that runs it while it is up.
type box struct {
	t       *testing.T
	root    string // its file system, on the host
	console *os.File
	nspawn  *exec.Cmd
	ended   chan error // gets nspawn's end
	beside  *box       // whose network it has, loopback and all; nil: one of its own
	leader  int        // its process 1, as the host numbers it; 0 while it is down
}

// rebootStatus is how systemd-nspawn with --keep-unit says that the machine asked for a reboot.
const rebootStatus = 133

// needBox skips what can't have a box, and says why.
func needBox(t *testing.T) {
	t.Helper()
	kit.OnlyInLab(t)
	if os.Getuid() != 0 {
		t.Skip("a box with systemd as process 1 needs root")
	}
	for _, program := range []string{"debootstrap", "systemd-nspawn", "nsenter", "apt-get"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is missing: on Debian 12, apt-get install debootstrap systemd-container", program)
		}
	}
}

// newBox makes a machine that is not up yet.
func newBox(t *testing.T) *box {
	t.Helper()
	needBox(t)
	from := kit.Try(base()).Must(t)
	dir := kit.Try(os.MkdirTemp(filepath.Dir(from), "box-")).Must(t)
	b := &box{t: t, root: filepath.Join(dir, "root")}
	t.Cleanup(func() {
		b.crash()
		kit.Should(t, os.RemoveAll(dir))
	})
	out, err := command("cp", "-a", "--reflink=auto", from, b.root).CombinedOutput()
	kit.Require(t, err == nil, "copy the base: %v\n%s", err, out)
	b.console = kit.Try(os.Create(filepath.Join(dir, "console"))).Must(t)
	t.Cleanup(func() { b.console.Close() })
	return b
}

// enter starts systemd-nspawn in a mount namespace of its own. Process 1 gets the unified cgroup hierarchy, as on any
// current machine: with version 1 it does not learn that a cgroup ran empty, and stopping a service can hang. Where the
// host is not unified, the hierarchy is mounted there alone. Process numbers are of their own as well, and nspawn is
// their process 1: however it ends, and be it with this test, the kernel ends the whole machine.
const enter = `
mount -t proc proc /proc || exit 1
if [ "$(stat -fc %T /sys/fs/cgroup)" != cgroup2fs ]; then
	mount -t cgroup2 cgroup2 /sys/fs/cgroup && mkdir -p "/sys/fs/cgroup/$0" && echo $$ >"/sys/fs/cgroup/$0/cgroup.procs" || exit 1
fi
exec systemd-nspawn "$@"`

// sweep removes the cgroups that enter made, once they are empty.
const sweep = `
if [ "$(stat -fc %T /sys/fs/cgroup)" != cgroup2fs ]; then
	mount -t cgroup2 cgroup2 /sys/fs/cgroup && find "/sys/fs/cgroup/$0" -depth -type d -exec rmdir {} +
fi`

// boot switches it on and waits until systemd, and the user's manager if the user lingers, are up.
func (b *box) boot() {
	b.t.Helper()
	args := []string{"sh", "-c", enter, b.name(), "--quiet", "--directory=" + b.root, "--machine=" + b.name(),
		"--register=no", "--keep-unit", "--console=pipe", "--resolv-conf=off", "--timezone=off", "--boot"}
	if b.beside == nil {
		args = append(args, "--private-network")
	} else {
		args = append([]string{"nsenter", "--target", strconv.Itoa(b.beside.leader), "--net", "--"}, args...)
	}
	b.nspawn = command(args[0], args[1:]...)
	b.nspawn.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1")
	b.nspawn.Stdout, b.nspawn.Stderr = b.console, b.console
	b.nspawn.SysProcAttr = &syscall.SysProcAttr{
		Setsid: true, Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL,
	}
	must(b.t, b.nspawn.Start())
	b.ended = make(chan error, 1)
	go func() { b.ended <- b.nspawn.Wait() }()
	b.eventually("systemd is up", time.Minute, func() bool {
		if b.leader = leaderOf(b.nspawn.Process.Pid); b.leader == 0 {
			return false
		}
		state := strings.TrimSpace(b.rootDo("systemctl", "is-system-running").stdout)
		if state != "running" && state != "degraded" {
			return false
		}
		return !b.lingers() || b.rootDo("systemctl", "--quiet", "is-active", fmt.Sprintf("user@%d.service", userID)).code == 0
	})
}

// name is the machine's, one per box.
func (b *box) name() string { return filepath.Base(filepath.Dir(b.root)) }

func (b *box) lingers() bool {
	_, err := os.Stat(filepath.Join(b.root, "var/lib/systemd/linger", userName))
	return err == nil
}

// reboot asks systemd for one, as a person would, and waits until it is up again. between runs while it is off.
func (b *box) reboot(between func()) {
	b.t.Helper()
	b.rootDo("systemctl", "reboot")
	status := b.down(90 * time.Second)
	if status != rebootStatus {
		b.t.Fatalf("systemd-nspawn ended with %d, want %d for a reboot\n%s", status, rebootStatus, b.tail())
	}
	between()
	b.boot()
}

// crash is power loss: all processes end at once, none can react. It does nothing to a box that is down.
func (b *box) crash() {
	b.t.Helper()
	if b.nspawn == nil {
		return
	}
	if leader := leaderOf(b.nspawn.Process.Pid); leader != 0 {
		_ = syscall.Kill(leader, syscall.SIGKILL) // may just have ended
	} else {
		_ = b.nspawn.Process.Kill()
	}
	b.down(30 * time.Second)
}

// down waits for the end of nspawn and returns its exit status.
func (b *box) down(limit time.Duration) int {
	b.t.Helper()
	select {
	case <-b.ended:
	case <-time.After(limit):
		b.t.Fatalf("not down within %s\n%s", limit, b.tail())
	}
	status := b.nspawn.ProcessState.ExitCode()
	b.nspawn, b.leader = nil, 0
	cmd := command("sh", "-c", sweep, b.name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	kit.Err(b.t, "remove the cgroups of the box", nil)(cmd.CombinedOutput())
	return status
}

// tail is the end of what the box wrote to its console.
func (b *box) tail() string {
	text, err := os.ReadFile(b.console.Name())
	if err != nil {
		return err.Error()
	}
	return lastLines(string(text), 15)
}

// eventually asks until cond holds, and ends the test when it does not within limit.
func (b *box) eventually(what string, limit time.Duration, cond func() bool) {
	b.t.Helper()
	if !kit.Within(limit, cond) {
		b.t.Fatalf("not within %s: %s\n%s", limit, what, b.tail())
	}
}
