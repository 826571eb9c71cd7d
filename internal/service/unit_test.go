package service

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/packaging"
)

// The packages' units are what is installed for a program where packages put it: there is one copy.
func TestPackagedUnits(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/1000")
	own := Options{Program: Daemon, Binary: packaging.Program, Args: []string{"run"}, Home: "/home/kim", Writable: []string{"/home/kim/.local/state/ccship", "/run/user/1000/ccship"}}
	system := Options{Program: Daemon, Binary: packaging.Program, Args: []string{"run"}, Home: "/home/kim", System: true, User: "kim", Writable: []string{"/home/kim/.local/state/ccship"}}
	for _, c := range []struct {
		o    Options
		want string
	}{
		{own, packaging.UserUnit}, {system, packaging.SystemUnit},
		{Options{Program: Server, Binary: "/usr/bin/ccship-server", Args: []string{"serve"}, Home: "/home/kim"}, packaging.ServerUserUnit},
	} {
		kit.Gives(t, fmt.Sprintf("system %v", c.o.System), c.want)(renderUnit(c.o))
	}
}

// What systemd must get, whatever else changes in the units.
func TestUnitSays(t *testing.T) {
	both := []string{
		"Type=notify", "Restart=on-failure", "RestartSec=5", "StartLimitIntervalSec=0", "RestartPreventExitStatus=2",
		"Environment=GOTRACEBACK=crash", // without it a crash ends with 2 as well, and nothing starts it again
		"NoNewPrivileges=yes", "ProtectSystem=strict", "IOSchedulingClass=idle",
	}
	for name, c := range map[string]struct{ unit, wanted string }{
		"user":   {packaging.UserUnit, "default.target"}, // a user's manager has no multi-user.target
		"system": {packaging.SystemUnit, "multi-user.target"},
	} {
		for _, line := range append(both, "WantedBy="+c.wanted) {
			kit.Has(t, fmt.Sprintf("%s: no line %s", name, line), c.unit, "\n"+line+"\n")
		}
		for _, key := range []string{"Nice", "MemoryMax", "MemoryHigh", "WatchdogSec", "TimeoutStopSec", "LimitNOFILE", "ExecReload", "SystemCallFilter"} {
			kit.Check(t, regexp.MustCompile(`(?m)^`+key+`=.`).MatchString(c.unit), "%s: no %s", name, key)
		}
	}
	// A user's systemd may not take capabilities away: with one of these the service does not start at all.
	for _, key := range []string{"PrivateDevices", "PrivateUsers", "ProtectClock", "ProtectKernelLogs", "ProtectKernelModules", "CapabilityBoundingSet", "User"} {
		kit.Check(t, !regexp.MustCompile(`(?m)^`+key+`=`).MatchString(packaging.UserUnit), "the user's unit has %s", key)
	}
}

func TestUnitCommand(t *testing.T) {
	for _, c := range []struct{ binary, config, want string }{
		{"/opt/cc ship/ccship", "", `ExecStart="/opt/cc ship/ccship" run`},
		{"/opt/100%/$HOME/ccship", "", `ExecStart=/opt/100%%/$HOME/ccship run`}, // variables mean nothing in a program's path
		{"/opt/{{x}}/ccship", "", `ExecStart="/opt/\x7b\x7bx}}/ccship" run`},
		{"/opt/a;b/ccship", "", `ExecStart="/opt/a;b/ccship" run`},
		{"/usr/bin/ccship", "/etc/a b%h$HOME\\\"q\"'.toml", `ExecStart=/usr/bin/ccship run --config "/etc/a b%%h$$HOME\\\"q\"'.toml"`},
		{"/usr/bin/ccship", "/home/ä/c.toml", `ExecStart=/usr/bin/ccship run --config /home/ä/c.toml`},
	} {
		args := []string{"run"}
		if c.config != "" {
			args = append(args, "--config", c.config)
		}
		text := kit.Try(renderUnit(Options{Program: Daemon, Binary: c.binary, Args: args, Home: "/home/kim"})).Must(t)
		kit.Equal(t, fmt.Sprintf("%q %q", c.binary, c.config), lineOf(text, "ExecStart="), c.want)
	}
	for _, binary := range []string{`/opt/a"b/ccship`, `/opt/a'b/ccship`, `/opt/a\b/ccship`, "/opt/a\nb/ccship"} {
		var e *control.Error
		_, err := renderUnit(Options{Program: Daemon, Binary: binary})
		kit.Check(t, errors.As(err, &e) && e.Hint != "", "%q: %v", binary, err)
	}
}

// A state folder outside the home is opened for writing, once.
func TestUnitWritable(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/1000")
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Program: Daemon, Home: "/home/kim", Writable: []string{"/srv/a b%/state", "/srv/a b%/state/run", "/home/kim/x", "/run/user/1000/ccship", "rel"}}, `ReadWritePaths=%h %t "-/srv/a b%%/state"`},
		{Options{Program: Daemon, Home: "/home/kim", Writable: []string{"/home/kimberly/$x"}}, `ReadWritePaths=%h %t -/home/kimberly/$x`},
		{Options{Program: Daemon, Home: "/srv/kim", System: true, User: "kim", Writable: []string{"/srv/kim/.local/state/ccship"}}, `ReadWritePaths=-/home -/var/home -/srv/kim`},
	} {
		c.o.Binary = "/usr/bin/ccship"
		text, err := renderUnit(c.o)
		got := lineOf(text, "ReadWritePaths=")
		kit.Check(t, err == nil && got == c.want, "%v\n got %s\nwant %s", err, got, c.want)
	}
}

// systemd itself finds nothing wrong, where it is installed.
func TestUnitVerifies(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("no systemd-analyze here")
	}
	dir := t.TempDir()
	for name, o := range map[string]Options{
		"ccship.service":     {Program: Daemon, Binary: "/bin/true", Args: []string{"run", "--config", "/a b/%$.toml"}, Home: "/home/kim", Writable: []string{"/srv/a b%/state"}},
		"ccship@kim.service": {Program: Daemon, Binary: "/bin/true", Home: "/srv/kim", System: true},

		"ccship-server.service": {Program: Server, Binary: "/bin/true", Args: []string{"serve", "--store", "sqlite:/a b/%$.db"}, Home: "/home/kim"},
	} {
		text := kit.Try(renderUnit(o)).Must(t)
		path := filepath.Join(dir, name)
		kit.Must(t, os.WriteFile(path, []byte(text), 0o600))
		argv := []string{"verify", "--man=no", path}
		if !o.System {
			argv = append([]string{"--user"}, argv...)
		}
		cmd := exec.Command("systemd-analyze", argv...)
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir)
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), "initialize manager") {
			t.Skipf("systemd-analyze does not work here: %s", out)
		}
		kit.Check(t, err == nil && !strings.Contains(string(out), name), "%s: %v\n%s", name, err, out)
	}
}

func TestProgramOf(t *testing.T) {
	for exec, want := range map[string]string{
		"{ path=/usr/bin/ccship ; argv[]=/usr/bin/ccship run ; ignore_errors=no }": "/usr/bin/ccship",
		"{ path=/opt/a ; b/ccship ; argv[]=/opt/a ; b/ccship run ; x }":            "/opt/a ; b/ccship",
		"": "",
	} {
		kit.Equal(t, exec, programOf(exec), want)
	}
}
