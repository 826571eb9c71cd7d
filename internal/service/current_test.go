package service

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/packaging"
)

// What install writes is current, wherever the program lies; what an older version wrote is not.
func TestCurrent(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/1000")
	o := Options{
		Program: Daemon, Binary: "/home/kim/my bin/ccship", Args: []string{"run", "--config", "/home/kim/c.toml"}, Home: "/home/kim", LogFile: "/home/kim/log",
		Writable: []string{"/home/kim/.local/state/ccship", "/data/ccship"},
	}
	user := kit.Try(renderUnit(o)).Must(t)
	agent := kit.Try(renderAgent(o)).Must(t)
	o.System, o.User = true, "kim"
	system := kit.Try(renderUnit(o)).Must(t)
	path := filepath.Join(t.TempDir(), "unit")
	for name, c := range map[string]struct {
		m                  manager
		text, change, with string
	}{
		"user":    {&systemd{o: Options{Program: Daemon}}, user, "WatchdogSec=60", "WatchdogSec=0"},
		"system":  {&systemd{o: Options{Program: Daemon, System: true}}, system, "Nice=10", "Nice=11"},
		"package": {&systemd{o: Options{Program: Daemon}}, packaging.UserUnit, "[Install]", "[Install]\nAlias=x"},
		"launchd": {&launchd{o: Options{Program: Daemon}}, agent, "<key>RunAtLoad</key>", "<key>RunAtLoads</key>"},
	} {
		older := strings.Replace(c.text, c.change, c.with, 1)
		for text, want := range map[string]bool{c.text: true, older: false, "": false} {
			kit.Must(t, os.WriteFile(path, []byte(text), 0o600))
			got, err := (&Service{manager: c.m}).Current(Status{Installed: true, UnitPath: path})
			kit.Check(t, err == nil && got == want, "%s: %v %v, want %v of\n%s", name, got, err, want, text)
		}
	}
	s := &Service{manager: &systemd{o: Options{Program: Daemon}}}
	got, err := s.Current(Status{Installed: true, UnitPath: path + ".gone"})
	kit.Check(t, !got && err == nil, "a file that was removed: %v %v", got, err)
	got, err = s.Current(Status{UnitPath: path})
	kit.Check(t, got && err == nil, "not installed: %v %v", got, err)
	got, err = s.Current(Status{Installed: true, UnitPath: t.TempDir()})
	kit.Check(t, !got && err != nil, "a folder: %v %v", got, err)
	got, err = (&Service{manager: nobody{Daemon}}).Current(Status{Installed: true, UnitPath: path})
	kit.Check(t, got && err == nil, "without files: %v %v", got, err)
}
