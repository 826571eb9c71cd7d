package systemd

import (
	"github.com/ccship/ccship/e2e/kit"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestWithoutLinger: the service lives as long as the user is logged in, comes back at the next login, and install says
// what to do about it.
func TestWithoutLinger(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.ok(m.rootDo("loginctl", "disable-linger", userName))
	m.eventually("the user's manager ends", 30*time.Second, func() bool { return m.state("", "user@1000.service").active == "inactive" })

	m.step("login, setup and install")
	m.logIn()
	told := m.setUp()
	want := "loginctl enable-linger " + userName
	kit.Check(t, strings.Contains(told.stdout+told.stderr, want), "install does not say %q:\n%s", want, told)
	m.running(0, 10*time.Second)
	m.delivered()

	m.step("logout ends it")
	m.logOut()

	m.step("login brings it back, with the lines that came meanwhile")
	m.append(5)
	m.logIn()
	m.running(0, 20*time.Second)
	m.delivered()
	m.logOut()
}

// logIn opens a session that lasts until logOut.
func (m *machine) logIn() {
	m.t.Helper()
	m.ok(m.rootDo("systemd-run", "--quiet", "--collect", "--unit=session-of-"+userName, "--uid="+userName,
		"--property=PAMName=login", "sleep", "infinity"))
	m.eventually("the user's manager is up", 30*time.Second, func() bool { return m.state("", "user@1000.service").active == "active" })
}

func (m *machine) logOut() {
	m.t.Helper()
	m.ok(m.rootDo("systemctl", "stop", "session-of-"+userName))
	m.eventually("the user's manager ends", 60*time.Second, func() bool { return m.state("", "user@1000.service").active == "inactive" })
	pids := m.processes("ccship")
	kit.Check(m.t, len(pids) <= 0, "after logout processes %v are there", pids)
}

// TestConfigMistake: systemd does not start again what can't work, and says why it failed.
func TestConfigMistake(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.setUp()
	m.running(0, 10*time.Second)
	m.delivered()
	good := m.ok(m.userDo("cat", home+"/.config/ccship/config.toml"))
	m.put(home+"/.config/ccship/config.toml", "server_url = 7\n", 0o600)
	m.userDo("systemctl", "--user", "restart", "ccship.service")
	var s unit
	m.eventually("the service has failed", 20*time.Second, func() bool {
		s = m.state("--user", "ccship.service")
		return s.active == "failed" || s.sub == "auto-restart"
	})
	kit.Check(t, s.sub == "failed" && s.status == "2" && s.restarts == "0",
		"with a bad configuration the service is %+v, want failed with status 2 and no restart", s)
	journal := m.ok(m.userDo("journalctl", "--user", "--unit=ccship.service", "--output=cat", "--no-pager"))
	if !strings.Contains(journal, "server_url") {
		t.Errorf("the journal does not say what is wrong:\n%s", lastLines(journal, 10))
	}
	m.put(home+"/.config/ccship/config.toml", good, 0o600)
	m.ok(m.userDo("ccship", "service", "start"))
	m.running(0, 10*time.Second)
	m.append(2)
	m.delivered()
}

// TestSystemInstance runs the daemon for a user from the system's manager.
func TestSystemInstance(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.ok(m.userDo("ccship", "setup", "--server-url", serverURL, "--key-file", keyFile, "--no-install", "--yes"))
	m.ok(m.rootDo("systemctl", "enable", "--quiet", "--now", "ccship@"+userName))
	s := m.state("", "ccship@"+userName+".service")
	kit.Require(t, s.active == "active", "the instance is %+v", s)
	m.delivered()
	m.reboot(func() { m.append(4) })
	m.serverAnswers()
	m.delivered()
	m.ok(m.rootDo("apt-get", "purge", "--yes", "--quiet", "ccship"))
	pids := m.processes("ccship")
	kit.Check(t, len(pids) <= 0, "after the purge processes %v are there", pids)
	for _, left := range m.named("/etc") {
		kit.Has(t, "the purge leaves", left, "ccship-server")
	}
}

// exposure is systemd's verdict on a unit's hardening, 0 (none) to 10.
var exposure = regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`)

// TestUnits: systemd finds nothing wrong with the units, and judges them well.
func TestUnits(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for _, args := range [][]string{
		{"systemd-analyze", "verify", "--man=no", "ccship-server.service"},
		{"systemd-analyze", "verify", "--man=no", "ccship@" + userName + ".service"},
	} {
		r := m.rootDo(args...)
		kit.Check(t, r.code == 0 && r.stdout+r.stderr == "", "%q: %s", args, r)
	}
	r := m.userDo("systemd-analyze", "--user", "verify", "--man=no", "ccship.service")
	kit.Check(t, r.code == 0 && r.stdout+r.stderr == "", "the user's unit: %s", r)
	for _, test := range []struct {
		name  string
		r     result
		bound float64
	}{
		{"ccship.service (user)", m.userDo("systemd-analyze", "--user", "security", "--no-pager", "ccship.service"), 6},
		{"ccship@.service", m.rootDo("systemd-analyze", "security", "--no-pager", "ccship@"+userName+".service"), 2},
		{"ccship-server.service", m.rootDo("systemd-analyze", "security", "--no-pager", "ccship-server.service"), 1.5},
	} {
		found := exposure.FindStringSubmatch(test.r.stdout)
		if found == nil {
			t.Errorf("%s: no verdict\n%s", test.name, test.r)
			continue
		}
		level := kit.Try(strconv.ParseFloat(found[1], 64)).Must(t)
		t.Logf("%s: exposure %s, bound %g", test.name, found[1], test.bound)
		kit.Check(t, level <= test.bound, "%s is exposed at %g, above %g:\n%s", test.name, level, test.bound,
			test.r.stdout)
	}
	r = m.rootDo("dpkg", "--verify", "ccship", "ccship-server")
	kit.Check(t, r.code == 0 && r.stdout == "", "dpkg finds changed files: %s", r)
	owner := m.ok(m.rootDo("stat", "-c", "%U %a", "/var/lib/ccship-server", "/var/lib/ccship-server/server.db"))
	kit.Check(t, owner == "ccship-server 700\nccship-server 600\n", "the server's folder and database are %q", owner)
}
