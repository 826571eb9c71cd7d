// Package packaging embeds the files that describe ccship to systemd, launchd and Claude Code: one copy for the
// packages, `ccship service install`, `ccship-server install` and `ccship plugin`. It does not know where programs are
// installed or who runs them.
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

// ServerStart is the command of ccship-server in ServerUserUnit, as systemd reads it.
const ServerStart = "/usr/bin/ccship-server serve"

// ServerUserUnit is systemd's unit for a server of one user. Packages bring another one, for a server of the system.
//
//go:embed server/ccship-server.user.service
var ServerUserUnit string

// AgentLog is the file that ServerAgent names for the server's output: an example, as its ProgramArguments are.
const AgentLog = "/Users/you/Library/Logs/ccship-server/ccship-server.log"

// ServerAgent is launchd's property list for a server of one user.
//
//go:embed server/com.github.ccship.server.plist
var ServerAgent string
