// Package packaging embeds the files that describe ccship to systemd, launchd and Claude Code: one copy for the
// packages, `ccship install` and `ccship plugin`. It does not know where programs are installed or who runs them.
package packaging

import _ "embed" // the files below

// Program is the path of the program in the units, and Start its command in them, as systemd reads it.
const (
	Program = "/usr/bin/ccship"
	Start   = Program + " run"
)

// UserUnit is systemd's unit for a user's own manager.
//
//go:embed ccship.service
var UserUnit string

// SystemUnit is systemd's template of a unit for the system's manager; the instance names the user.
//
//go:embed ccship@.service
var SystemUnit string

// Agent is launchd's property list. Its ProgramArguments are an example.
//
//go:embed com.github.ccship.plist
var Agent string
