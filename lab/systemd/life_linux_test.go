package systemd

import (
	"fmt"
	"github.com/ccship/ccship/e2e/kit"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLife is one installation's life, from its first day to its removal.
func TestLife(t *testing.T) {
	t.Parallel()
	m := newMachine(t)

	m.step("setup and install as a normal user")
	m.setUp()
	m.running(0, 10*time.Second)
	if s := m.state("--user", "ccship.service"); s.active != "active" || s.enabled != "enabled" || s.file != "/usr/lib/systemd/user/ccship.service" {
		t.Errorf("the service is %+v, want the package's unit, active and enabled", s)
	}
	m.delivered()
	m.append(5)
	m.delivered()
	past := m.past()

	m.step("installing again changes nothing")
	m.synced()
	m.ok(m.userDo("ccship", "service", "install"))
	m.running(0, 10*time.Second)

	m.step("kill -9")
	m.kill("-KILL", 10*time.Second)
	m.append(5)
	m.delivered()

	m.step("a daemon that hangs is killed and started again")
	m.hang()

	m.offAndOn()

	m.step("upgrade in place")
	m.upgrade()
	kit.Equal(t, "the server knows of the past", m.past(), past)
	m.verified()

	m.step("uninstall")
	m.uninstall()

	m.step("purge")
	m.purge()
}

// kill sends the daemon a signal that ends it, and waits for the next one.
func (m *machine) kill(signal string, limit time.Duration) {
	m.t.Helper()
	before := m.status()
	restarts := m.state("--user", "ccship.service").restarts
	m.ok(m.userDo("bash", "-c", fmt.Sprintf("kill %s %d", signal, before.PID)))
	m.running(before.PID, limit)
	now := m.state("--user", "ccship.service").restarts
	kit.Check(m.t, now != restarts, "systemd counts %s restarts, as before", now)
}

// hang stops the daemon's every thread; the watchdog, here with a shorter time than the unit's, finds out.
func (m *machine) hang() {
	m.t.Helper()
	const dropIn = home + "/.config/systemd/user/ccship.service.d/watchdog.conf"
	watchdog := m.ok(m.userDo("systemctl", "--user", "show", "--value", "--property=WatchdogUSec", "ccship.service"))
	v := strings.TrimSpace(watchdog)
	kit.Check(m.t, v != "0" && v != "infinity", "the unit's watchdog is %s", v)
	m.put(dropIn, "[Service]\nWatchdogSec=3\n", 0o644)
	m.ok(m.userDo("systemctl", "--user", "daemon-reload"))
	m.ok(m.userDo("systemctl", "--user", "restart", "ccship.service"))
	m.running(0, 10*time.Second)
	m.kill("-STOP", 30*time.Second)
	journal := m.ok(m.userDo("journalctl", "--user", "--unit=ccship.service", "--output=cat", "--no-pager"))
	if !strings.Contains(strings.ToLower(journal), "watchdog timeout") {
		m.t.Errorf("the journal does not name the watchdog:\n%s", lastLines(journal, 20))
	}
	m.append(3)
	m.delivered()
	must(m.t, os.RemoveAll(filepath.Dir(filepath.Join(m.root, dropIn))))
	m.ok(m.userDo("systemctl", "--user", "daemon-reload"))
	m.ok(m.userDo("systemctl", "--user", "restart", "ccship.service"))
	m.running(0, 10*time.Second)
}

// offAndOn restarts the machine, first in order and then by power loss, while lines come.
func (m *machine) offAndOn() {
	m.t.Helper()
	m.step("reboot, and lines that come while it is off")
	m.synced()
	m.reboot(func() { m.append(7) })
	m.running(0, 20*time.Second)
	m.serverAnswers()
	m.delivered()
	m.synced()
	m.onlySent(7)

	m.step("power loss, with lines that just came and lines that come while it is off")
	m.append(40)
	m.crash()
	m.append(9)
	m.boot()
	m.running(0, 20*time.Second)
	m.serverAnswers()
	m.delivered()
	m.verified()
}

// verified lets ccship compare the disk with the server.
func (m *machine) verified() {
	m.t.Helper()
	m.ok(m.userDo("ccship", "verify"))
}

// upgrade installs the newer packages over the running programs.
func (m *machine) upgrade() {
	m.t.Helper()
	m.synced()
	before := m.status()
	m.install(newer)
	s := m.running(before.PID, 30*time.Second)
	kit.Check(m.t, before.Version != s.Version && strings.Contains(s.Version, newer),
		"after the upgrade from %q the daemon says %q", before.Version, s.Version)
	kit.Has(m.t, "the server says", m.ok(m.rootDo("ccship-server", "--version")), newer)
	m.serverAnswers()
	m.append(6)
	m.delivered()
	m.synced()
	m.onlySent(6)
	kit.Equal(m.t, "the server's unit is", m.state("", "ccship-server.service").active, "active")
}

// uninstall leaves nothing that runs or would be started, then with --purge nothing of the user's either.
func (m *machine) uninstall() {
	m.t.Helper()
	runtime := fmt.Sprintf("/proc/%d/root/run/user/%d", m.leader, userID)
	kit.Check(m.t, len(m.named(runtime)) != 0, "there is no socket that uninstall could leave")
	m.ok(m.userDo("ccship", "service", "uninstall"))
	if s := m.state("--user", "ccship.service"); s.active != "inactive" || s.enabled == "enabled" {
		m.t.Errorf("after uninstall the service is %+v", s)
	}
	pids := m.processes("ccship")
	kit.Check(m.t, len(pids) <= 0, "after uninstall processes %v are there", pids)
	var left []string
	for _, dir := range []string{home + "/.config/systemd", runtime} {
		left = append(left, m.named(dir)...)
	}
	kit.Check(m.t, len(left) <= 0, "uninstall leaves %q", left)
	kit.Check(m.t, m.exists(home+"/.config/ccship/config.toml") && m.exists(home+"/.local/state/ccship"),
		"uninstall without --purge removes configuration or state")
	m.ok(m.userDo("ccship", "service", "uninstall", "--purge", "--yes"))
	left = m.named(home + "/.local")
	kit.Check(m.t, len(left) <= 0, "uninstall --purge leaves %q", left)
	if got, err := os.ReadFile(filepath.Join(m.root, transcript)); err != nil || string(got) != string(m.text) {
		m.t.Errorf("the transcript is no longer what Claude Code wrote (%v)", err)
	}
}

// purge removes the packages while a user's service runs; only the conversations stay.
func (m *machine) purge() {
	m.t.Helper()
	m.ok(m.userDo("ccship", "service", "install"))
	m.eventually("the service runs", time.Minute, func() bool { return len(m.processes("ccship")) > 0 })
	m.ok(m.rootDo("apt-get", "purge", "--yes", "--quiet", "ccship", "ccship-server"))
	pids := append(m.processes("ccship"), m.processes("ccship-server")...)
	kit.Check(m.t, len(pids) <= 0, "after the purge processes %v are there", pids)
	var left []string
	for _, dir := range []string{"/usr", "/etc", "/var/lib"} {
		left = append(left, m.named(dir)...)
	}
	kit.Equal(m.t, "the purge leaves", left, []string{"/var/lib/ccship-server"})
	kit.Check(m.t, m.exists("/var/lib/ccship-server/server.db"), "the purge deletes the conversations")
}

// processes are those in the box with a name.
func (m *machine) processes(name string) []string {
	m.t.Helper()
	var found []string
	for line := range strings.Lines(m.ok(m.rootDo("sh", "-c", "for p in /proc/[0-9]*; do echo \"${p#/proc/} $(cat $p/comm 2>/dev/null)\"; done"))) {
		if pid, comm, _ := strings.Cut(strings.TrimSpace(line), " "); comm == name {
			found = append(found, pid)
		}
	}
	return found
}

// named are the topmost files below a folder of the box whose names speak of ccship.
func (m *machine) named(dir string) []string {
	m.t.Helper()
	root := m.root
	if strings.HasPrefix(dir, "/proc/") { // a mount of the box's own
		root = ""
	}
	var found []string
	must(m.t, filepath.WalkDir(filepath.Join(root, dir), func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			if os.IsNotExist(err) {
				return nil
			}
			return err
		}
		if !strings.Contains(entry.Name(), "ccship") {
			return nil
		}
		found = append(found, strings.TrimPrefix(path, root))
		if entry.IsDir() {
			return filepath.SkipDir
		}
		return nil
	}))
	return found
}
