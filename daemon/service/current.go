package service

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"

	"github.com/ccship/ccship/packaging"
)

// Current says whether the file in force is the one that this version installs, but for what differs from one
// installation to the next: the command, and folders that are written to. st is a Status; a service that is not
// installed is current, for there is nothing to renew.
func (s *Service) Current(st Status) (bool, error) {
	if !st.Installed || st.UnitPath == "" {
		return true, nil
	}
	have, err := os.ReadFile(st.UnitPath)
	if errors.Is(err, fs.ErrNotExist) { // the manager remembers a file that was removed
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", st.UnitPath, err)
	}
	return s.fits(string(have)), nil
}

func (s *systemd) fits(text string) bool {
	want := packaging.UserUnit
	if s.o.System {
		want = packaging.SystemUnit
	}
	own := regexp.MustCompile(`(?m)^(ExecStart|ReadWritePaths)=.*$`)
	return own.ReplaceAllString(text, "$1") == own.ReplaceAllString(want, "$1")
}

func (l *launchd) fits(text string) bool {
	without := func(text string) string { return arguments.ReplaceAllString(text, "$1$2") }
	return without(text) == without(packaging.Agent)
}

func (s *scm) fits(string) bool { return true }
func (nobody) fits(string) bool { return true }
