package service

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
)

// outputs matches the files in a property list that the program's output goes to.
var outputs = regexp.MustCompile(`(<key>Standard(?:Out|Error)Path</key>\s*)<string>[^<]*</string>`)

// Current reports whether the file in force is the one that this version installs, apart from what differs between
// installations: the command, and the writable folders. st is a Status. A service that is not installed is current,
// because there is nothing to update.
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
	want := s.o.Program.unit(s.o.System)
	own := regexp.MustCompile(`(?m)^(ExecStart|ReadWritePaths)=.*$`)
	return own.ReplaceAllString(text, "$1") == own.ReplaceAllString(want, "$1")
}

func (l *launchd) fits(text string) bool {
	without := func(text string) string {
		return outputs.ReplaceAllString(arguments.ReplaceAllString(text, "$1$2"), "$1")
	}
	return without(text) == without(l.o.Program.agent)
}

func (s *scm) fits(string) bool { return true }
func (nobody) fits(string) bool { return true }
